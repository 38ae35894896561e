"""K-center: pairs of which every other one has a near neighbour."""

from __future__ import annotations

import numpy as np

from lors.selection.candidates import Candidates, check_count
from lors.selection.pool import Choice, Pool

__all__ = ["by_k_center", "k_center"]


def k_center(candidates: Candidates, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Farthest-first traversal, the greedy k-center of core-set selection.

    The first centre is the candidate nearest to the mean, each next one the candidate farthest from
    its nearest centre. The largest distance to a centre is at most twice what the best choice could
    reach. It reads the candidates once for each pick.

    Paper: https://arxiv.org/abs/1708.00489 (Sener & Savarese 2018)

    Args:
        candidates: joint features of M pairs.
        count: n, how many to choose.

    Returns:
        The picks in order, and how far each was from its nearest centre when picked (the first:
        from the mean). Shapes: (n,), (n,)

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(candidates))
    picks, squares = np.empty(count, np.int64), np.empty(count)
    span, norms = candidates.span, candidates.norms()
    nearest = np.full(len(span), np.inf)
    centre, squares[0] = span.least(norms)
    picks[0] = centre
    for k in range(1, count):
        row = candidates.row(centre)
        np.minimum(nearest, norms + row @ row - 2 * candidates.dot(row), out=nearest)
        span.put(nearest, centre, -np.inf)  # never again, even among duplicates
        centre, farthest = span.least(-nearest)
        picks[k], squares[k] = centre, -farthest
    return picks, np.sqrt(squares.clip(0))


def by_k_center(pool: Pool, count: int) -> Choice:
    """The selection ``k-center``."""
    return k_center(pool.candidates, count)
