from __future__ import annotations

from pathlib import Path

import numpy as np

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.shown import look_at, pair_grid, show_picture


def test_pixels_are_the_pictures(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    shown = look_at(opened, opened.distilled.pairs)
    assert shown.pictures is not None
    expected = opened.distilled.pixels().numpy().transpose(0, 2, 3, 1)
    assert (shown.pictures == expected).all()
    assert set(shown.words) <= set(opened.setting.pairs.splits["train"].captions)


def test_features_are_shown_by_the_nearest_real_images(features_run: Path) -> None:
    opened = Run(features_run)
    shown = look_at(opened, opened.start)
    assert shown.image is not None
    assert shown.pictures is not None
    assert shown.pictures.shape == (len(opened.start), 16, 16, 3)
    real = opened.setting.pairs.splits["train"].images[shown.image[0]]
    assert (shown.pictures[0] == real.transpose(1, 2, 0)).all()


def test_embeddings_are_shown_by_numbers(embeddings_run: Path) -> None:
    opened = Run(embeddings_run)
    shown = look_at(opened, opened.start)
    assert shown.pictures is None
    assert shown.words[0] == f"text {shown.caption[0]}"
    with style():
        _, axes = pair_grid(1, 1)
        show_picture(axes[0, 0, 0], shown, 0)
    assert shown.image is not None
    assert axes[0, 0, 0].texts[0].get_text() == f"image\n{shown.image[0]}"


def test_a_grid_has_two_pictures_for_every_pair() -> None:
    with style():
        figure, axes = pair_grid(2, 3)
    assert axes.shape == (2, 3, 2)
    assert len(figure.axes) == np.prod(axes.shape)
