"""What there is to see of synthetic pairs: pictures and captions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from lors.runs.opened import Run
from lors.sets.synthetic import SyntheticPairs
from lors.setting.neighbours import Neighbours, nearest_captions, nearest_images
from lors.show.figures.canvas import GREY, frame, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Shown", "look_at", "pair_grid", "show_picture"]


@dataclass(frozen=True)
class Shown:
    """Synthetic pairs as a person can look at them.

    Args:
        pictures: the images; in space features, the nearest real ones; none where the data has no
            pixels. Shape: (N, size, size, 3), uint8
        image: the nearest real image of each, in space features. Shape: (N,)
        caption: the nearest real caption of each. Shape: (N,)
        words: its text, or its number where the data has no words.
    """

    pictures: np.ndarray | None
    image: np.ndarray | None
    caption: np.ndarray
    words: list[str]


@torch.no_grad()
def look_at(run: Run, pairs: SyntheticPairs) -> Shown:
    """Pictures and captions of pairs of a run, as they started or as they ended."""
    split = run.setting.pairs.splits["train"]
    caption = _first(nearest_captions(run.setting, pairs.texts))
    words = [split.captions[c] if split.captions else f"text {c}" for c in caption]
    if run.config.encoder.space == "pixels":
        pixels = run.setting.distilled(pairs).pixels().cpu().numpy()
        return Shown(pixels.transpose(0, 2, 3, 1), None, caption, words)
    image = _first(nearest_images(run.setting, pairs.images))
    pictures = None if split.texts is not None else split.images[image].transpose(0, 2, 3, 1)
    return Shown(pictures, image, caption, words)


def pair_grid(lines: int, columns: int) -> tuple[Figure, np.ndarray]:
    """A figure of pictures two by two. Shape of its axes: (lines, columns, 2)"""
    figure = new_figure(3 * columns, 2.3 * lines)
    grid = figure.add_gridspec(lines, 3 * columns, width_ratios=[1, 1, 0.08] * columns)
    axes = np.empty((lines, columns, 2), object)
    for line, column, side in np.ndindex(axes.shape):
        axes[line, column, side] = figure.add_subplot(grid[line, 3 * column + side])
        axes[line, column, side].set_axis_off()
    return figure, axes


def show_picture(axes: Axes, shown: Shown, pair: int) -> None:
    """Put the picture of a pair on axes, or the number of its image if there is no picture."""
    axes.set_axis_on()
    frame(axes)
    if shown.pictures is not None:
        axes.imshow(shown.pictures[pair], interpolation="nearest")
        return
    assert shown.image is not None  # without pixels there are features
    axes.imshow(np.full((1, 1, 3), 235, np.uint8))
    axes.text(0, 0, f"image\n{shown.image[pair]}", ha="center", va="center", color=GREY)


def _first(found: Neighbours) -> np.ndarray:
    return found.index[:, 0]
