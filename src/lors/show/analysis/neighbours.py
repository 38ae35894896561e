"""The real captions and images that the pairs of a run are nearest to."""

from __future__ import annotations

import numpy as np

from lors.runs.opened import Run
from lors.setting.neighbours import nearest_captions, nearest_images
from lors.show.analysis.rows import Row

__all__ = ["neighbour_rows"]


def neighbour_rows(run: Run, k: int = 1) -> list[Row]:
    """The nearest real captions and images of every pair, before and after distillation.

    An image is told by its number in the training split and its first caption.
    """
    split, rows = run.setting.pairs.splits["train"], []
    for when, pairs in (("before", run.start), ("after", run.distilled.pairs)):
        sides = {
            "caption": nearest_captions(run.setting, pairs.texts, k),
            "image": nearest_images(run.setting, pairs.images, k),
        }
        first = np.searchsorted(split.owner, np.arange(len(split)))
        for side, found in sides.items():
            captions = found.index if side == "caption" else first[found.index]
            for pair, place in np.ndindex(found.index.shape):
                row = {"pair": pair, "when": when, "of": side, "place": place + 1}
                row |= {
                    "nearest": int(found.index[pair, place]),
                    "cosine": float(found.cosine[pair, place]),
                    "words": split.captions[captions[pair, place]] if split.captions else "",
                }
                rows.append(row)
    return sorted(rows, key=lambda row: row["pair"])
