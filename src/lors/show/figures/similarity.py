"""The learned similarity: its diagonal, and what lies off it (the paper's figure of S)."""

from __future__ import annotations

import numpy as np

from lors.runs.opened import Run
from lors.show.analysis.spectrum import without_diagonal
from lors.show.figures.canvas import GOLD, GREY, Drawing, new_figure, whole_numbers

__all__ = ["make"]


def make(run: Run) -> Drawing:
    """Diagonal and residual of S, apart because the diagonal is so much larger."""
    similarity = run.distilled.pairs.similarity.matrix().float().cpu().numpy()
    diagonal, residual = similarity.diagonal(), without_diagonal(similarity)
    count = len(similarity)
    figure = new_figure(8.2, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=(1, 2.6))
    left.barh(np.arange(count), diagonal, height=1.0 if count > 40 else 0.8, color=GOLD)
    left.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    left.set(ylim=(count - 0.5, -0.5), xlabel="similarity to its own text", ylabel="image")
    left.set_title("Diagonal")
    reach = float(np.quantile(np.abs(residual), 0.99)) or 1.0  # a few outliers would pale the rest
    heat = right.imshow(residual, cmap="RdBu_r", vmin=-reach, vmax=reach, interpolation="nearest")
    right.set(xlabel="text", ylabel="image")
    right.set_title("Residual, off the diagonal")
    figure.colorbar(heat, ax=right, shrink=0.85, extend="both").outline.set_visible(False)
    for axis in (left.yaxis, right.xaxis, right.yaxis):
        whole_numbers(axis)
    rows = [
        {"image": i, "text": j, "similarity": float(similarity[i, j])}
        for i, j in np.ndindex(similarity.shape)
    ]
    return Drawing(figure, rows)
