"""The similarity matrix for looking at: the diagonal, the residual, and the largest finds."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from lors.show.analysis.spectrum import without_diagonal
from lors.show.report.blocks import Block, text
from lors.similarity import Similarity

__all__ = ["in_words", "matrix_of", "mined_blocks"]

TOP = 18
STEPS = 32767
"""Values of the heat map are 16-bit steps: finer than anyone can see or needs to read."""

WORDS = {
    "identity": "S is the identity: every image belongs to its own text and to no other. "
    "No similarity was learned.",
    "diagonal": "S = diag(ω): each pair has a learned weight, and nothing off the diagonal.",
    "lowrank": "S = diag(ω) + (α/r) L Rᵀ with rank r = {rank} and α = {alpha:g}, learned.",
    "full": "Every one of the N × N similarities was learned.",
    "fixed": "S was given and not learned.",
    "lowrank-parts": "S = diag(ω) + L Rᵀ within each of the sets that were merged, and 0 between "
    "them.",
}


def matrix_of(similarity: Similarity) -> np.ndarray:
    """S as numbers that JSON can hold. Shape: (N, N)"""
    return np.nan_to_num(similarity.matrix().detach().float().cpu().numpy())


def in_words(kind: str, rank: int, alpha: float) -> str:
    """What kind of similarity it is.

    >>> in_words("lowrank", 10, 3.0)
    'S = diag(ω) + (α/r) L Rᵀ with rank r = 10 and α = 3, learned.'
    """
    if kind not in WORDS:
        return f"S is of the kind {kind}, which does not come with lors."
    return WORDS[kind].format(rank=rank, alpha=alpha)


def mined_blocks(matrix: np.ndarray) -> list[Block]:
    """The heat map, and the largest similarities off the diagonal, if any is there."""
    residual = without_diagonal(matrix)
    if not residual.any():
        flat = np.allclose(np.diag(matrix), 1)
        return [] if flat else [_heat_map(matrix, residual, with_residual=False)]
    return [
        _heat_map(matrix, residual, with_residual=True),
        text(
            "Image and text of different pairs, with the largest similarity first. Where the two "
            "fit, the method has found a false negative: a match that S = I would deny."
        ),
        {"kind": "ranked", "entries": _largest(matrix)},
    ]


def _heat_map(matrix: np.ndarray, residual: np.ndarray, with_residual: bool) -> Block:
    """The diagonal as a strip of its own: its values would drown those of the residual."""
    diagonal = np.diag(matrix)
    return {
        "kind": "heatmap",
        "diagonal": diagonal.tolist(),
        "diagonal_limit": float(max(np.abs(diagonal - 1).max(), 1e-6)),
        "residual": _quantised(residual) if with_residual else None,
    }


def _quantised(residual: np.ndarray) -> dict[str, Any]:
    """Values as steps of one size, little-endian; colours saturate at all but a few outliers."""
    step = float(np.abs(residual).max()) / STEPS
    off_diagonal = np.abs(residual[~np.eye(len(residual), dtype=bool)])
    steps = np.rint(residual / step).astype("<i2")
    return {
        "size": len(residual),
        "step": step,
        "limit": float(max(np.quantile(off_diagonal, 0.995), step)),
        "steps": base64.b64encode(steps.tobytes()).decode(),
    }


def _largest(matrix: np.ndarray) -> list[dict[str, Any]]:
    values = matrix.copy()
    np.fill_diagonal(values, -np.inf)
    order = np.argsort(values, axis=None)[::-1][: min(TOP, values.size - len(values))]
    images, texts = np.unravel_index(order, values.shape)
    return [
        {"image": int(i), "text": int(j), "value": float(values[i, j])}
        for i, j in zip(images, texts, strict=True)
    ]
