"""A start in closed form: the directions in which images and texts agree most.

Canonical correlation analysis finds pairs of directions, one among image features x and one among
text features y, along which the two are correlated most. With regularised covariances,

    M = (C_xx + γI)^-½ C_xy (C_yy + γI)^-½ = Σ ρ_k p_k q_kᵀ,   a_k = (C_xx + γI)^-½ p_k,

and b_k likewise; ρ_k falls with k. Retrieval by aᵀx and bᵀy alone is nearly as good as that of
trained heads, so a set that teaches these directions is a good one to begin with.

Photos cannot be directions, but their texts can fit them: Σ ρ_k (a_kᵀx) b_k is the text that points
along the b_k as far as photo x points along the a_k. A real caption says less, and other things.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.initial.cross_covariance import NEGLIGIBLE
from lors.initial.directions import direction_pairs
from lors.initial.material import Material, Start
from lors.selection import Candidates

__all__ = ["canonical", "canonical_directions", "canonical_texts"]

RIDGE = 1.0
"""γ, in mean variances of a feature of its side."""


def canonical_directions(
    candidates: Candidates, count: int, ridge: float = RIDGE
) -> tuple[Tensor, Tensor]:
    """The leading directions of each side, as unit vectors, at most ``count``.

    Args:
        candidates: joint features of M pairs.
        count: how many.
        ridge: γ, in mean variances of a feature.

    Returns:
        Shapes: (K, f), (K, d)
    """
    image, common, text = _covariances(candidates, ridge)
    p, rho, q = torch.linalg.svd(image @ common @ text, full_matrices=False)
    kept = min(count, int((rho > NEGLIGIBLE * rho[0]).sum()))
    directions = p.T[:kept] @ image, q[:kept] @ text
    return F.normalize(directions[0], dim=1).float(), F.normalize(directions[1], dim=1).float()


def canonical_texts(candidates: Candidates, images: np.ndarray, ridge: float = RIDGE) -> Tensor:
    """Σ ρ_k (a_kᵀx) b_k = (C_yy + γI)⁻¹ C_yx (C_xx + γI)⁻¹ x for some images, as unit vectors.

    Args:
        candidates: joint features of M pairs.
        images: which of them. Shape: (n,)
        ridge: γ, in mean variances of a feature.

    Returns:
        Shape: (n, d)
    """
    image, common, text = _covariances(candidates, ridge)
    x = np.stack([candidates.row(number)[: candidates.widths[0]] for number in images])
    texts = torch.from_numpy(x).double() @ image @ image @ common @ text @ text
    return F.normalize(texts, dim=1).float()


def _covariances(candidates: Candidates, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """(C_xx + γI)^-½, C_xy and (C_yy + γI)^-½."""
    width, total = candidates.widths[0], torch.zeros(candidates.width, candidates.width).double()
    for _, block in candidates.blocks():
        total += block.double().T @ block.double()
    total /= len(candidates)
    sides = slice(width), slice(width, None)
    image, text = (_whitening(total[side, side], ridge) for side in sides)
    return image, total[sides], text


def _whitening(covariance: Tensor, ridge: float) -> Tensor:
    """(C + γI)^-½"""
    values, vectors = torch.linalg.eigh(covariance)
    if not values.mean() > 0:  # a side that is the same for all pairs
        return torch.zeros_like(covariance)
    regular = values.clamp(min=0) + ridge * values.mean()
    return vectors * regular.rsqrt() @ vectors.T


def canonical(material: Material) -> Start:
    """(±a_k, ±b_k): see ``direction_pairs``. Photos of frozen trunks get their canonical texts."""
    start = direction_pairs(material, canonical_directions)
    if start.real is None or not material.frozen:
        return start
    candidates = material.averaged()
    texts = canonical_texts(candidates, start.real[0]).numpy()
    joint = np.concatenate([np.zeros((len(texts), candidates.widths[0])), texts], 1)
    _, encoded = material.encode(*candidates.sides(joint))
    return start._replace(texts=encoded)
