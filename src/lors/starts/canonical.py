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

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.selection import Candidates
from lors.starts.cross_covariance import NEGLIGIBLE
from lors.starts.directions import direction_pairs
from lors.starts.material import Material, Start

__all__ = [
    "Covariances",
    "canonical",
    "canonical_directions",
    "canonical_texts",
    "covariances_of",
]

RIDGE = 1.0
"""γ, in mean variances of a feature of its side."""


class Covariances(NamedTuple):
    """What is known of the pairs.

    Args:
        image: (C_xx + γI)^-½. Shape: (f, f)
        common: C_xy. Shape: (f, d)
        text: (C_yy + γI)^-½. Shape: (d, d)
    """

    image: Tensor
    common: Tensor
    text: Tensor


def canonical_directions(covariances: Covariances, count: int) -> tuple[Tensor, Tensor]:
    """The leading directions of each side, as unit vectors, at most ``count``.

    Returns:
        Shapes: (K, f), (K, d)
    """
    image, common, text = covariances
    p, rho, q = torch.linalg.svd(image @ common @ text, full_matrices=False)
    kept = min(count, int((rho > NEGLIGIBLE * rho[0]).sum()))
    directions = p.T[:kept] @ image, q[:kept] @ text
    return F.normalize(directions[0], dim=1).float(), F.normalize(directions[1], dim=1).float()


def canonical_texts(covariances: Covariances, images: Tensor) -> Tensor:
    """Σ ρ_k (a_kᵀx) b_k = (C_yy + γI)⁻¹ C_yx (C_xx + γI)⁻¹ x for some images, as unit vectors.

    Shape: (n, f) -> (n, d)
    """
    image, common, text = covariances
    texts = images.double() @ image @ image @ common @ text @ text
    return F.normalize(texts, dim=1).float()


def covariances_of(candidates: Candidates, ridge: float = RIDGE) -> Covariances:
    """One pass over the pairs.

    Args:
        candidates: joint features of M pairs.
        ridge: γ, in mean variances of a feature.
    """
    width, total = candidates.widths[0], torch.zeros(candidates.width, candidates.width).double()
    for _, block in candidates.blocks():
        total += block.double().T @ block.double()
    total /= len(candidates)
    sides = slice(width), slice(width, None)
    image, text = (_whitening(total[side, side], ridge) for side in sides)
    return Covariances(image, total[sides], text)


def _whitening(covariance: Tensor, ridge: float) -> Tensor:
    """(C + γI)^-½"""
    values, vectors = torch.linalg.eigh(covariance)
    if not values.mean() > 0:  # a side that is the same for all pairs
        return torch.zeros_like(covariance)
    regular = values.clamp(min=0) + ridge * values.mean()
    return vectors * regular.rsqrt() @ vectors.T


def canonical(material: Material) -> Start:
    """(±a_k, ±b_k): see ``direction_pairs``. Photos of frozen trunks get their canonical texts."""
    candidates = material.averaged
    covariances, width = covariances_of(candidates), candidates.widths[0]
    u, v = canonical_directions(covariances, -(-material.count // 2))
    start = direction_pairs(material, candidates, u, v)
    if start.real is None or not material.frozen:
        return start
    joint = np.stack([candidates.row(number) for number in start.real[0]])
    joint[:, width:] = canonical_texts(covariances, torch.from_numpy(joint[:, :width]))
    _, encoded = material.encode(*candidates.sides(joint))
    return start._replace(texts=encoded)
