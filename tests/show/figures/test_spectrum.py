from __future__ import annotations

from pathlib import Path

import numpy as np

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.spectrum import make


def test_bars_are_the_singular_values_of_s(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    with style():
        drawing = make(opened)
    matrix = opened.distilled.pairs.similarity.matrix().double().numpy()
    expected = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose([row["full"] for row in drawing.rows], expected, rtol=1e-5)
