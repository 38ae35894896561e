from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.similarity import make


def test_the_data_is_the_whole_of_s(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    with style():
        drawing = make(opened)
    matrix = opened.distilled.pairs.similarity.matrix().numpy()
    values = np.array([row["similarity"] for row in drawing.rows]).reshape(matrix.shape)
    np.testing.assert_array_equal(values, matrix)
    bars = [patch.get_width() for patch in drawing.figure.axes[0].patches]  # type: ignore[attr-defined]
    assert bars == pytest.approx(matrix.diagonal().tolist())
