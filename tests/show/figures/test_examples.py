from __future__ import annotations

from pathlib import Path

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.examples import make


def test_every_pair_is_in_the_data_and_the_first_are_drawn(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    with style():
        drawing = make(opened)
    assert [row["pair"] for row in drawing.rows] == list(range(len(opened.distilled)))
    titles = [axes.get_title("left") for axes in drawing.figure.axes]
    assert titles[:3] == ["pair 0, before", "pair 0, after", "pair 1, before"]
    assert len(drawing.rows) == 7
    assert titles[14:] == ["", ""]  # the eighth place stays empty


def test_images_that_stand_in_are_named(features_run: Path, embeddings_run: Path) -> None:
    for path in (features_run, embeddings_run):
        with style():
            row = make(Run(path)).rows[0]
        assert {"image_before", "image_after", "caption_before", "caption_after"} < set(row)
