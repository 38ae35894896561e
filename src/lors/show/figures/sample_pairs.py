"""Images and the texts of other pairs, by similarity (the paper's figure of sample pairs)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lors.runs.opened import Run
from lors.show.analysis.rows import Row
from lors.show.figures.canvas import BLUE, GREY, RED, Drawing, wrapped
from lors.show.figures.shown import Shown, look_at, pair_grid, show_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make", "ranked_pairs"]

COLUMNS = 4
COLOURS = {"largest": RED, "middle": GREY, "smallest": BLUE}


def make(run: Run) -> Drawing:
    """The pairs off the diagonal with the largest, the middle and the smallest similarity.

    They are shown as they started, when a person could still tell what they are.
    """
    similarity = run.distilled.pairs.similarity.matrix().float().cpu().numpy()
    shown, chosen = look_at(run, run.start), ranked_pairs(similarity, COLUMNS)
    figure, axes = pair_grid(len(chosen), COLUMNS)
    rows: list[Row] = []
    for line, (group, pairs) in zip(axes, chosen.items(), strict=True):
        for both, (image, text) in zip(line, pairs, strict=False):
            value = float(similarity[image, text])
            _show(both, shown, image, text, f"s = {value:.3f}", COLOURS[group])
            rows.append(
                {
                    "group": group,
                    "image": image,
                    "text": text,
                    "similarity": value,
                    "caption_of_image": shown.words[image],
                    "caption_of_text": shown.words[text],
                }
            )
        line[0, 0].set_ylabel(f"{group} similarity", color=COLOURS[group], fontsize=10)
    return Drawing(figure, rows)


def _show(
    both: Sequence[Axes], shown: Shown, image: int, text: int, value: str, colour: str
) -> None:
    """An image, what belongs to the text beside it, and the text."""
    for axes, pair in zip(both, (image, text), strict=True):
        show_picture(axes, shown, pair)
    both[0].set_title(f"image {image}", fontsize=8)
    both[1].set_title(f"text {text}", fontsize=8)
    label = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    place = both[0].transAxes
    both[0].text(0.04, 0.05, value, color=colour, fontweight="bold", transform=place, bbox=label)
    both[0].set_xlabel(wrapped(shown.words[text], 46, lines=2), fontsize=7.5, loc="left")


def ranked_pairs(similarity: np.ndarray, count: int) -> dict[str, list[tuple[int, int]]]:
    """Places off the diagonal at the top, in the middle and at the bottom of the order of S.

    Args:
        similarity: S. Shape: (N, N)
        count: places per group; fewer if S is small.
    """
    size = len(similarity)
    images, texts = np.nonzero(~np.eye(size, dtype=bool))
    order = np.argsort(-similarity[images, texts], kind="stable")
    places = [(int(images[k]), int(texts[k])) for k in order]
    count = min(count, len(places) // 3)
    middle = (len(places) - count) // 2
    return {
        "largest": places[:count],
        "middle": places[middle : middle + count],
        "smallest": places[len(places) - count :][::-1],
    }
