"""Learned similarities where false negatives were planted (the paper's histogram)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lors.runs.opened import Run
from lors.show.analysis.false_negatives import auc, values
from lors.show.figures.canvas import BLUE, GOLD, RED, Drawing, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make"]

OFF, ON = 50, 20
"""Bins: thousands of values off the diagonal, a hundred on it."""

COLOURS = {"true positives": GOLD, "false negatives": RED, "true negatives": BLUE}


def make(run: Run) -> Drawing:
    """The share of each group in every bin, so that 100 values stand beside 9,800.

    What S starts at 0 and what it starts at 1 have a panel each: they never come near each other.
    """
    found = values(run)
    figure = new_figure(9, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    _draw(left, {name: found[name] for name in ("true negatives", "false negatives")}, OFF)
    _draw(right, {"true positives": found["true positives"]}, ON)
    left.set_title(f"Off the diagonal: AUC {auc(found):.4f}")
    right.set_title("On the diagonal")
    left.set_ylabel("share of the group")
    rows = [
        {"group": name, "similarity": float(value)}
        for name, group in found.items()
        for value in group
    ]
    return Drawing(figure, rows)


def _draw(axes: Axes, found: dict[str, np.ndarray], bins: int) -> None:
    edges = np.histogram_bin_edges(np.concatenate(list(found.values())), bins).tolist()
    for name, group in found.items():
        label = f"{name} ({len(group):,})"
        shares = np.full(len(group), 1 / len(group))
        axes.hist(group, edges, weights=shares, color=COLOURS[name], alpha=0.75, label=label)
    axes.set_xlabel("learned similarity")
    axes.margins(y=0.25)  # room for the legend
    axes.legend(loc="upper left")
