"""Singular values of S with and without its diagonal (the paper's eigenvalue analysis)."""

from __future__ import annotations

import numpy as np

from lors.analysis.spectrum import spectra
from lors.figures.canvas import BLUE, GOLD, RED, Drawing, new_figure
from lors.runs import Run

__all__ = ["make"]


def make(run: Run) -> Drawing:
    """S, S without its diagonal, and Gaussian matrices of the mean and variance of the latter."""
    rows = spectra(run.distilled.pairs.similarity.matrix().float().cpu().numpy())
    place, full, residual, gaussian = (
        np.array([row[name] for row in rows]) for name in ("place", "full", "residual", "gaussian")
    )
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    axes.bar(place, full, width=0.9, color=GOLD, label="S")
    axes.bar(place, residual, width=0.9, color=RED, label="S without its diagonal")
    axes.plot(place, gaussian, color=BLUE, linewidth=1.8, label="Gaussian matrix like the latter")
    axes.set(xlim=(0.4, len(rows) + 0.6), xlabel="place", ylabel="singular value")
    axes.legend()
    return Drawing(figure, rows)
