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
    "Directions",
    "canonical",
    "canonical_directions",
    "canonical_texts",
    "covariances_of",
    "fitting_texts",
    "mixtures",
]

ENOUGH = 2 / 3
"""Pairs for each direction that matters, from which on pairs of single directions are better."""
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


class Directions(NamedTuple):
    """The directions in which the two sides agree, the strongest first.

    Args:
        image: a_k, as unit vectors. Shape: (K, f)
        text: b_k, as unit vectors. Shape: (K, d)
        strength: ρ_k. Shape: (K,)
    """

    image: Tensor
    text: Tensor
    strength: Tensor

    def number(self) -> float:
        """How many directions matter: (Σ ρ²)² / Σ ρ⁴, which is K where all are equally strong."""
        squares = self.strength.square()
        return float(squares.sum() ** 2 / squares.square().sum()) if len(squares) else 0.0


def canonical_directions(covariances: Covariances) -> Directions:
    """All directions of a strength that is not negligible."""
    image, common, text = covariances
    p, rho, q = torch.linalg.svd(image @ common @ text, full_matrices=False)
    kept = int((rho > NEGLIGIBLE * rho[0]).sum())
    a, b = (F.normalize(side, dim=1).float() for side in (p.T[:kept] @ image, q[:kept] @ text))
    return Directions(a, b, rho[:kept].float())


def mixtures(directions: Directions, count: int, generator: torch.Generator) -> Tensor:
    """(Σ z_k ρ_k a_k, Σ z_k ρ_k b_k) with normal z, each side as unit vectors. Shape: (N, f + d)"""
    z = torch.randn(count, len(directions.strength), generator=generator) * directions.strength
    sides = (z @ directions.image, z @ directions.text)
    return torch.cat([F.normalize(side, dim=1) for side in sides], 1)


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
    """(±a_k, ±b_k): see ``direction_pairs``. Photos of frozen trunks get their canonical texts.

    Where features are learned and there are few pairs for the directions that matter, each pair is
    a mixture of all directions: pairs of single directions would say nothing of the others.
    """
    candidates = material.averaged
    covariances = covariances_of(candidates)
    directions = canonical_directions(covariances)
    if material.features and material.count < ENOUGH * directions.number():
        mixed = mixtures(directions, material.count, material.generator)
        return Start(*material.encode(*candidates.sides(mixed.numpy())), None)
    half = -(-material.count // 2)
    start = direction_pairs(material, candidates, directions.image[:half], directions.text[:half])
    if start.real is None or not material.frozen:
        return start
    return start._replace(texts=fitting_texts(material, candidates, start.real[0], covariances))


def fitting_texts(
    material: Material,
    candidates: Candidates,
    photos: np.ndarray,
    covariances: Covariances | None = None,
) -> Tensor:
    """The canonical texts of some photos, as synthetic texts are. Shape: (n,) -> (n, d)

    Args:
        material: the real pairs.
        candidates: their joint features, each image with the mean of its captions.
        photos: which of the images.
        covariances: of the candidates, if they are known.
    """
    width = candidates.widths[0]
    joint = np.stack([candidates.row(number) for number in photos])
    images = torch.from_numpy(joint[:, :width])
    joint[:, width:] = canonical_texts(covariances or covariances_of(candidates), images)
    return material.encode_texts(candidates.sides(joint)[1])
