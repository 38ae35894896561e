"""Images and the texts of other pairs, by similarity (the paper's figure of sample pairs)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lors.analysis.rows import Row
from lors.figures.canvas import BLUE, GREY, RED, Drawing, new_figure, wrapped
from lors.figures.shown import look_at, show_picture
from lors.runs import Run

__all__ = ["make", "ranked_pairs"]

COLUMNS = 4


def make(run: Run) -> Drawing:
    """The pairs off the diagonal with the largest, the middle and the smallest similarity.

    They are shown as they started, when a person could still tell what they are.
    """
    similarity = run.distilled.pairs.similarity.matrix().float().cpu().numpy()
    shown, chosen = look_at(run, run.start), ranked_pairs(similarity, COLUMNS)
    figure = new_figure(12, 8.2)
    blocks: Any = figure.subfigures(len(chosen), 1)
    rows: list[Row] = []
    for block, (group, pairs) in zip(blocks, chosen.items(), strict=True):
        colour = {"largest": RED, "middle": GREY, "smallest": BLUE}[group]
        block.suptitle(f"{group} similarity", x=0.01, ha="left", color=colour, fontsize=11)
        axes = block.subplots(1, 2 * COLUMNS, squeeze=False)[0]
        for each in axes[2 * len(pairs) :]:
            each.set_axis_off()
        for place, (image, text) in enumerate(pairs):
            value = float(similarity[image, text])
            left, right = axes[2 * place], axes[2 * place + 1]
            show_picture(left, shown, image)
            show_picture(right, shown, text)
            left.set_title(f"image {image}   s = {value:.3f}", fontsize=8)
            right.set_title(f"of text {text}", fontsize=8, color=GREY)
            words = wrapped(shown.words[text], 50, lines=2)
            left.set_xlabel(words, fontsize=7.5, loc="left")
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
    return Drawing(figure, rows)


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
