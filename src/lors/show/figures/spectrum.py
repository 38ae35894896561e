"""Singular values of S with and without its diagonal (the paper's eigenvalue analysis)."""

from __future__ import annotations

import numpy as np

from lors.runs.opened import Run
from lors.show.analysis.spectrum import spectra
from lors.show.figures.canvas import BLUE, GOLD, RED, Drawing, new_figure, whole_numbers

__all__ = ["make"]


def make(run: Run) -> Drawing:
    """S, S without its diagonal, and Gaussian matrices of the mean and variance of the latter."""
    rows = spectra(run.distilled.pairs.similarity.matrix().float().cpu().numpy())
    place, full, residual, gaussian = (
        np.array([row[name] for row in rows]) for name in ("place", "full", "residual", "gaussian")
    )
    figure = new_figure(10, 3.6)
    left, right = figure.subplots(1, 2)
    left.bar(place, full, width=1, color=GOLD, label="S")
    for axes in (left, right):
        axes.bar(place, residual, width=1, color=RED, label="S without its diagonal")
        axes.plot(place, gaussian, color=BLUE, linewidth=1.8, label="Gaussian matrices like it")
        axes.set(xlim=(0.5, len(rows) + 0.5), xlabel="place", ylabel="singular value")
        whole_numbers(axes.xaxis)
    left.set_title("With the diagonal")
    right.set_title("Without it, enlarged")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return Drawing(figure, rows)
