"""K-means on joint features: pairs that stand for a group of similar ones each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.selection import Candidates
from lors.selection.candidates import check_count
from lors.starts.material import Material, Start

__all__ = ["Clusters", "centroids", "k_means", "nearest_to_centroids"]

PASSES = 100
"""At most; a few thousand pairs settle within about twenty."""


class Clusters(NamedTuple):
    """What k-means found.

    Args:
        centroids: Shape: (N, f + d)
        nearest: the pair nearest to each centroid, all different. Shape: (N,)
    """

    centroids: Tensor
    nearest: np.ndarray


def k_means(candidates: Candidates, count: int, rng: np.random.Generator) -> Clusters:
    """Lloyd's algorithm from drawn pairs, until no pair changes its cluster.

    It reads the candidates once for each pass. A cluster that loses its last pair stays where it
    is.

    Args:
        candidates: joint features of M pairs.
        count: N, how many clusters.
        rng: draws the pairs to start from.

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(candidates))
    drawn = rng.choice(len(candidates), count, replace=False)
    means = torch.stack([torch.from_numpy(candidates.row(pair)) for pair in drawn]).float()
    before = torch.full((len(candidates),), -1)
    for _ in range(PASSES):
        cluster, sums, sizes = _assign(candidates, means)
        if torch.equal(cluster, before):
            break
        before, filled = cluster, sizes > 0
        means[filled] = (sums[filled] / sizes[filled, None]).float()
    return Clusters(means, _nearest(candidates, means))


def nearest_to_centroids(material: Material) -> Start:
    """The real pair nearest to each centroid: AMD's start, and MDM's."""
    candidates, captions = material.candidates
    pairs = k_means(candidates, material.count, _rng(material)).nearest
    return material.start(pairs, captions[pairs])


def centroids(material: Material) -> Start:
    """The centroids themselves, which only features can be."""
    candidates, _ = material.candidates
    found = k_means(candidates, material.count, _rng(material)).centroids
    return Start(*material.encode(*candidates.sides(found.numpy())), None)


def _rng(material: Material) -> np.random.Generator:
    return np.random.default_rng(material.generator.initial_seed())


def _distances(block: Tensor, means: Tensor) -> Tensor:
    """‖mean‖² - 2 meanᵀx: the squared distance up to ‖x‖². Shape: (m, f), (N, f) -> (m, N)"""
    return torch.addmm(means.square().sum(1), block, means.T, alpha=-2)


def _assign(candidates: Candidates, means: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The cluster of each pair, and the sum and the number of the pairs of each."""
    cluster = torch.empty(len(candidates), dtype=torch.long)
    sums = torch.zeros(means.shape, dtype=torch.double)
    for pairs, block in candidates.blocks():
        cluster[pairs] = _distances(block, means).argmin(1)
        sums.index_add_(0, cluster[pairs], block.double())
    return cluster, sums, torch.bincount(cluster, minlength=len(means))


def _nearest(candidates: Candidates, means: Tensor) -> np.ndarray:
    """Centroid after centroid, its nearest pair that no other has."""
    distances = torch.empty(len(candidates), len(means))
    for pairs, block in candidates.blocks():
        distances[pairs] = block.square().sum(1, keepdim=True) + _distances(block, means)
    nearest = np.empty(len(means), np.int64)
    for number, column in enumerate(distances.unbind(1)):
        nearest[number] = column.argmin()
        distances[nearest[number]] = torch.inf
    return nearest
