"""A start in closed form: the singular vectors of the images' and texts' cross-covariance.

To first order, a contrastive loss teaches two linear heads nothing but C = E[x yᵀ], the
cross-covariance of image features x and text features y. With C = Σ σ_k u_k v_kᵀ, the 2K pairs
(±u_k, ±v_k) have a cross-covariance with the same singular vectors, and a mean of zero, as the
standardised data has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lors.initial.material import Material, Real, Start
from lors.selection import Candidates

__all__ = ["cross_covariance", "singular_vectors", "spanning_pairs"]

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


def spanning_pairs(candidates: Candidates, u: Tensor, v: Tensor, count: int) -> np.ndarray:
    """Real pairs in the place of (±u_k, ±v_k).

    For each in turn, the pair that no other has taken whose image and text point that way most: the
    sum of the two cosines is largest.

    Args:
        candidates: joint features of M pairs.
        u: left singular vectors. Shape: (K, f)
        v: right singular vectors. Shape: (K, d)
        count: n, at most 2K.

    Returns:
        Shape: (n,)
    """
    width, cosines = candidates.widths[0], torch.empty(len(candidates), len(u))
    for pairs, block in candidates.blocks():
        image, text = (
            torch.nn.functional.normalize(x, dim=1) for x in block.tensor_split((width,), 1)
        )
        cosines[pairs] = image @ u.T + text @ v.T
    chosen, taken = np.empty(count, np.int64), torch.zeros(len(candidates), dtype=torch.bool)
    for number in range(count):
        wanted = cosines[:, number // 2] * (-1) ** number
        chosen[number] = wanted.masked_fill(taken, -torch.inf).argmax()
        taken[chosen[number]] = True
    return chosen


def cross_covariance(material: Material) -> Start:
    """(±u_k, ±v_k) as long as real features are; in space pixels, the real pairs nearest to that.

    Beyond twice the rank of the cross-covariance there are no more directions, and drawn real pairs
    take the rest.
    """
    candidates = material.averaged()
    u, v = singular_vectors(candidates, -(-material.count // 2))
    count = min(material.count, 2 * len(u))
    if not material.features:
        paired, captions = material.candidates()
        chosen = spanning_pairs(paired, u, v, count)
        images, texts = _others(material, material.count - count, chosen)
        return material.start(
            np.concatenate([chosen, images]), np.concatenate([captions[chosen], texts])
        )
    sign = torch.tensor([1.0, -1.0]).repeat(len(u))[:count, None]
    joint = sign * torch.cat([u, v], 1).repeat_interleave(2, 0)[:count]
    directions = material.encode(*candidates.sides(joint.numpy()))
    others = material.tensors(*_others(material, material.count - count))
    both = [torch.cat(parts) for parts in zip(directions, others, strict=True)]
    return Start(both[0], both[1], None)


def _others(material: Material, count: int, chosen: Sequence[int] | np.ndarray = ()) -> Real:
    """Drawn real pairs that are not among the chosen ones."""
    images, captions = material.drawn
    free = ~np.isin(images, chosen)
    return images[free][:count], captions[free][:count]
