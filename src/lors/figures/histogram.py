"""Learned similarities where false negatives were planted (the paper's histogram)."""

from __future__ import annotations

import numpy as np

from lors.analysis.false_negatives import auc, values
from lors.figures.canvas import BLUE, GOLD, RED, Drawing, new_figure
from lors.runs import Run

__all__ = ["make"]

BINS = 60
COLOURS = {"true positives": GOLD, "false negatives": RED, "true negatives": BLUE}


def make(run: Run) -> Drawing:
    """The share of each group in every bin, so that 100 values stand beside 9,800."""
    found = values(run)
    everything = np.concatenate(list(found.values()))
    edges = np.linspace(everything.min(), max(everything.max(), everything.min() + 1e-6), BINS + 1)
    figure = new_figure(6.8, 3.8)
    axes = figure.subplots()
    for name, group in reversed(found.items()):
        label = f"{name} ({len(group):,})"
        shares = np.full(len(group), 1 / len(group))
        axes.hist(
            group, edges.tolist(), weights=shares, color=COLOURS[name], alpha=0.75, label=label
        )
    axes.set(xlabel="learned similarity", ylabel="share of the group")
    axes.set_title(f"False against true negatives: AUC {auc(found):.3f}")
    axes.legend()
    rows = [
        {"group": name, "similarity": float(value)}
        for name, group in found.items()
        for value in group
    ]
    return Drawing(figure, rows)
