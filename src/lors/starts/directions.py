"""Starts along directions: pairs of an image and a text that point the same way as a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lors.selection import Candidates
from lors.starts.material import Material, Real, Start

__all__ = ["direction_pairs", "spanning_pairs"]


def spanning_pairs(candidates: Candidates, u: Tensor, v: Tensor, count: int) -> np.ndarray:
    """Real pairs in the place of (±u_k, ±v_k).

    For each in turn, the pair that no other has taken whose image and text point that way most: the
    sum of the two cosines is largest.

    Args:
        candidates: joint features of M pairs.
        u: unit vectors among image features. Shape: (K, f)
        v: unit vectors among text features. Shape: (K, d)
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


def direction_pairs(material: Material, candidates: Candidates, u: Tensor, v: Tensor) -> Start:
    """(±u_k, ±v_k) as long as real features are; in space pixels, the real pairs nearest to that.

    Both signs, so that the mean is zero, as that of standardised data is. Beyond twice the number
    of directions, drawn real pairs take the rest.

    Args:
        material: the real pairs.
        candidates: their joint features.
        u: unit vectors among image features; more than half as many as pairs are not used.
            Shape: (K, f)
        v: unit vectors among text features. Shape: (K, d)
    """
    count = min(material.count, 2 * len(u))
    if not material.features:
        paired, captions = material.candidates
        chosen = spanning_pairs(paired, u, v, count)
        images, texts = _others(material, material.count - count, chosen)
        return material.start(
            np.concatenate([chosen, images]), np.concatenate([captions[chosen], texts])
        )
    sign = torch.tensor([1.0, -1.0]).repeat(len(u))[:count, None]
    joint = sign * torch.cat([u, v], 1).repeat_interleave(2, 0)[:count]
    pairs = material.encode(*candidates.sides(joint.numpy()))
    others = material.tensors(*_others(material, material.count - count))
    both = [torch.cat(parts) for parts in zip(pairs, others, strict=True)]
    return Start(both[0], both[1], None)


def _others(material: Material, count: int, chosen: Sequence[int] | np.ndarray = ()) -> Real:
    """Drawn real pairs that are not among the chosen ones."""
    images, captions = material.drawn
    free = ~np.isin(images, chosen)
    return images[free][:count], captions[free][:count]
