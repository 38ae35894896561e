from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.histogram import make
from lors.system.errors import InputError


def test_every_similarity_is_in_one_group(toy_run: Path) -> None:
    opened = Run(toy_run)
    with style():
        drawing = make(opened)
    count = len(opened.distilled)
    sizes = Counter(row["group"] for row in drawing.rows)
    assert sizes["true positives"] == count
    assert sizes["false negatives"] == count // 2 * 2
    assert sum(sizes.values()) == count**2
    assert "AUC" in drawing.figure.axes[0].get_title("left")


def test_a_run_without_replicas_is_refused(tiny_run: Path) -> None:
    with pytest.raises(InputError, match="no planted false negatives"), style():
        make(Run(tiny_run))
