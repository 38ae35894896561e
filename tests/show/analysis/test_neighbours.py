from __future__ import annotations

from pathlib import Path

import pytest

from lors.runs.opened import Run
from lors.show.analysis.neighbours import neighbour_rows


def test_rows_tell_of_every_pair_before_and_after(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    rows = neighbour_rows(opened, 2)
    assert len(rows) == len(opened.distilled) * 2 * 2 * 2
    of_first = [row for row in rows if row["pair"] == 0 and row["place"] == 1]
    assert [(row["when"], row["of"]) for row in of_first] == [
        ("before", "caption"),
        ("before", "image"),
        ("after", "caption"),
        ("after", "image"),
    ]
    assert of_first[0]["cosine"] == pytest.approx(1, abs=1e-5)  # it starts as a real pair
    split = opened.setting.pairs.splits["train"]
    image = of_first[1]["nearest"]
    assert of_first[1]["words"] == split.captions[list(split.owner).index(image)]
