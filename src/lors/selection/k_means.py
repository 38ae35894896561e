"""K-means: pairs that stand for a group of similar ones each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from lors.selection.candidates import CHUNK, check_count
from lors.selection.pool import Choice, Pool

__all__ = ["Clusters", "Points", "Rows", "by_medoids", "k_means"]

PASSES = 100
"""At most; a few thousand pairs settle within about twenty."""


class Points(Protocol):
    """What can be clustered: ``Candidates``, or ``Rows``."""

    def __len__(self) -> int: ...

    def row(self, pair: int) -> np.ndarray:
        """One of them. Shape: (d,)"""
        ...

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Some at a time, and where they are. Shape: (chunk, d)"""
        ...


class Rows:
    """The rows of a matrix as points.

    >>> points = Rows(torch.eye(3))
    >>> len(points), points.row(1).tolist()
    (3, [0.0, 1.0, 0.0])

    Args:
        matrix: Shape: (M, d)
    """

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def row(self, pair: int) -> np.ndarray:
        return self.matrix[pair].numpy()

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        for start in range(0, len(self), CHUNK):
            here = slice(start, min(start + CHUNK, len(self)))
            yield here, self.matrix[here]


class Clusters(NamedTuple):
    """What k-means found.

    Args:
        centroids: Shape: (N, d)
        nearest: the point nearest to each centroid, all different. Shape: (N,)
        members: the cluster of each point. Shape: (M,)
    """

    centroids: Tensor
    nearest: np.ndarray
    members: Tensor


def k_means(points: Points, count: int, rng: np.random.Generator) -> Clusters:
    """Lloyd's algorithm from drawn points, until none changes its cluster.

    It reads the points once for each pass. A cluster that loses its last point stays where it is.

    >>> found = k_means(Rows(torch.tensor([[0.0], [0.2], [5.0]])), 2, np.random.default_rng(0))
    >>> sorted(found.centroids.flatten().tolist()), bool(found.members[0] == found.members[1])
    ([0.10000000149011612, 5.0], True)

    Args:
        points: M of them.
        count: N, how many clusters.
        rng: draws the points to start from.

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(points))
    drawn = rng.choice(len(points), count, replace=False)
    means = torch.stack([torch.from_numpy(points.row(pair)) for pair in drawn]).float()
    members = torch.full((len(points),), -1)
    for _ in range(PASSES):
        before = members
        members, sums, sizes = _assign(points, means)
        if torch.equal(members, before):
            break
        filled = sizes > 0
        means[filled] = (sums[filled] / sizes[filled, None]).float()
    return Clusters(means, _nearest(points, means), members)


def by_medoids(pool: Pool, count: int) -> Choice:
    """The selection ``medoids``: the pair nearest to each centroid; its distance is its score."""
    found = k_means(pool.everything, count, pool.rng)
    rows = np.stack([pool.everything.row(int(pair)) for pair in found.nearest])
    return found.nearest, np.linalg.norm(rows - found.centroids.numpy(), axis=1)


def _distances(block: Tensor, means: Tensor) -> Tensor:
    """‖mean‖² - 2 meanᵀx: the squared distance up to ‖x‖². Shape: (m, f), (N, f) -> (m, N)"""
    return torch.addmm(means.square().sum(1), block, means.T, alpha=-2)


def _assign(points: Points, means: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The cluster of each point, and the sum and the number of the points of each."""
    cluster = torch.empty(len(points), dtype=torch.long)
    sums = torch.zeros(means.shape, dtype=torch.double)
    for pairs, block in points.blocks():
        cluster[pairs] = _distances(block, means).argmin(1)
        sums.index_add_(0, cluster[pairs], block.double())
    return cluster, sums, torch.bincount(cluster, minlength=len(means))


def _nearest(points: Points, means: Tensor) -> np.ndarray:
    """Centroid after centroid, its nearest point that no other has."""
    distances = torch.empty(len(points), len(means))
    for pairs, block in points.blocks():
        distances[pairs] = block.square().sum(1, keepdim=True) + _distances(block, means)
    nearest = np.empty(len(means), np.int64)
    for number, column in enumerate(distances.unbind(1)):
        nearest[number] = column.argmin()
        distances[nearest[number]] = torch.inf
    return nearest
