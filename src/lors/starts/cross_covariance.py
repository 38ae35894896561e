"""A start in closed form: the singular vectors of the images' and texts' cross-covariance.

To first order, a contrastive loss teaches two linear heads nothing but C = E[x yᵀ], the
cross-covariance of image features x and text features y. With C = Σ σ_k u_k v_kᵀ, the 2K pairs
(±u_k, ±v_k) have a cross-covariance with the same singular vectors, and a mean of zero, as the
standardised data has.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lors.selection import Candidates
from lors.starts.directions import direction_pairs
from lors.starts.material import Material, Start

__all__ = ["NEGLIGIBLE", "cross_covariance", "singular_vectors"]

NEGLIGIBLE = 1e-6
"""Singular values below this share of the first are rounding."""


def singular_vectors(candidates: Candidates, count: int) -> tuple[Tensor, Tensor]:
    """The leading left and right singular vectors of the cross-covariance, at most ``count``.

    Shapes: (K, f), (K, d)
    """
    width, total = candidates.widths[0], torch.zeros(candidates.widths, dtype=torch.double)
    for _, block in candidates.blocks():
        total += block[:, :width].T.double() @ block[:, width:].double()
    u, sigma, v = torch.linalg.svd(total, full_matrices=False)
    rank = int((sigma > NEGLIGIBLE * sigma[0]).sum())
    kept = min(count, rank)
    return u.T[:kept].float(), v[:kept].float()


def cross_covariance(material: Material) -> Start:
    """(±u_k, ±v_k), at most twice the rank of the cross-covariance: see ``direction_pairs``."""
    candidates = material.averaged
    u, v = singular_vectors(candidates, -(-material.count // 2))
    return direction_pairs(material, candidates, u, v)
