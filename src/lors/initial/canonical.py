"""A start in closed form: the directions in which images and texts agree most.

Canonical correlation analysis finds pairs of directions, one among image features x and one among
text features y, along which the two are correlated most. With regularised covariances,

    M = (C_xx + γI)^-½ C_xy (C_yy + γI)^-½ = Σ ρ_k p_k q_kᵀ,   a_k = (C_xx + γI)^-½ p_k,

and b_k likewise; ρ_k falls with k. Retrieval by aᵀx and bᵀy alone is nearly as good as that of
trained heads, so a set that teaches these directions is a good one to begin with.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.initial.cross_covariance import NEGLIGIBLE
from lors.initial.directions import direction_pairs
from lors.initial.material import Material, Start
from lors.selection import Candidates

__all__ = ["canonical", "canonical_directions"]

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
    width, total = candidates.widths[0], torch.zeros(candidates.width, candidates.width).double()
    for _, block in candidates.blocks():
        total += block.double().T @ block.double()
    total /= len(candidates)
    image, text = (
        _whitening(total[side, side], ridge) for side in (slice(width), slice(width, None))
    )
    p, rho, q = torch.linalg.svd(image @ total[:width, width:] @ text, full_matrices=False)
    kept = min(count, int((rho > NEGLIGIBLE * rho[0]).sum()))
    directions = p.T[:kept] @ image, q[:kept] @ text
    return F.normalize(directions[0], dim=1).float(), F.normalize(directions[1], dim=1).float()


def _whitening(covariance: Tensor, ridge: float) -> Tensor:
    """(C + γI)^-½"""
    values, vectors = torch.linalg.eigh(covariance)
    regular = values.clamp(min=0) + ridge * values.mean()
    return vectors * regular.rsqrt() @ vectors.T


def canonical(material: Material) -> Start:
    """(±a_k, ±b_k): see ``direction_pairs``."""
    return direction_pairs(material, canonical_directions)
