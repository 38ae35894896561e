"""What attracts and repels one image embedding, by loss (the paper's figure of anchors)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lors.runs.opened import Run
from lors.show.analysis.anchors import (
    ANCHOR_WEIGHTS,
    anchor_weights,
    embeddings,
    most_similar_image,
)
from lors.show.figures.canvas import BLUE, GREY, INK, RED, Drawing, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["make", "plane"]

LABELS = {"nce": "NCE, S = I", "ence": "eNCE", "bce": "BCE", "wbce": "wBCE"}


def make(run: Run) -> Drawing:
    """The image with the largest similarity off the diagonal, with all texts of the set."""
    images, texts = embeddings(run)
    similarity = run.distilled.pairs.similarity.matrix().to(images)
    n = most_similar_image(similarity.numpy())
    temperature = run.config.encoder.temperature
    weights = {
        loss: anchor_weights(loss, images, texts, similarity, n, temperature).numpy()
        for loss in ANCHOR_WEIGHTS
    }
    places, own = plane(images[n], texts), similarity[n].numpy()
    figure = new_figure(12, 5.6)
    maps, bars = figure.subplots(2, len(weights), height_ratios=(1.5, 1))
    for axes, lower, (loss, weight) in zip(maps, bars, weights.items(), strict=True):
        _draw_map(axes, places, weight, n)
        axes.set_title(LABELS[loss])
        _draw_bars(lower, own, weight)
    _draw_legend(figure)
    maps[0].set_ylabel("main direction across")
    bars[0].set_ylabel("pull, −W of the text")
    rows = [
        {
            "image": n,
            "text": j,
            "similarity": float(own[j]),
            "cosine": float(places[j, 0]),
            **{f"w_{loss}": float(weight[j]) for loss, weight in weights.items()},
        }
        for j in range(len(own))
    ]
    return Drawing(figure, rows)


def plane(image: Tensor, texts: Tensor) -> np.ndarray:
    """The texts seen from an image: along it, and along the main direction across it.

    Args:
        image: u_n, normalised. Shape: (d,)
        texts: v. Shape: (m, d)

    Returns:
        Places; the image is at (1, 0). Shape: (m, 2)
    """
    along = texts @ image
    across = texts - along[:, None] * image
    _, _, directions = torch.linalg.svd(across - across.mean(0), full_matrices=False)
    main = directions[0] * directions[0].sum().sign()  # a fixed one of its two signs
    return torch.stack([along, across @ main], 1).numpy()


def _draw_map(axes: Axes, places: np.ndarray, weight: np.ndarray, n: int) -> None:
    """u_n and the anchors; a line is as wide as the anchor is strong."""
    reach = np.abs(weight).max() or 1.0
    for (x, y), w in zip(places, weight, strict=True):
        colour, strength = (BLUE if w < 0 else RED), abs(w) / reach
        axes.plot((1, x), (0, y), color=colour, linewidth=3.5 * strength, alpha=0.55)
        axes.plot(x, y, "o", color=colour, markersize=2.5 + 5 * strength)
    axes.plot(*places[n], "o", color="none", markeredgecolor=INK, markersize=11)
    axes.plot(1, 0, "*", color=INK, markersize=13)
    axes.set_xlabel("cosine to the image")


def _draw_legend(figure: Figure) -> None:
    axes = figure.axes[0]
    (image,) = axes.plot([], [], "*", color=INK, markersize=11, label="the image")
    (own,) = axes.plot([], [], "o", color="none", markeredgecolor=INK, label="its own text")
    (pull,) = axes.plot([], [], "o-", color=BLUE, label="attracts it")
    (push,) = axes.plot([], [], "o-", color=RED, label="repels it")
    figure.legend(handles=[image, own, pull, push], loc="outside lower center", ncols=4)


def _draw_bars(axes: Axes, similarity: np.ndarray, weight: np.ndarray) -> None:
    """Pull of each text, most similar first."""
    order = np.argsort(-similarity, kind="stable")
    pull = -weight[order]
    axes.bar(range(len(pull)), pull, width=0.9, color=[BLUE if p > 0 else RED for p in pull])
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xticks([])
    axes.set_xlabel("texts, most similar by S first")
