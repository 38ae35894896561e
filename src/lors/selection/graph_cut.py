"""Graph cut: pairs that are similar to all pairs and not to each other."""

from __future__ import annotations

import numpy as np

from lors.selection.candidates import check_count
from lors.selection.facility_location import similarities
from lors.selection.pool import Choice, Pool

__all__ = ["by_graph_cut", "graph_cut"]


def graph_cut(similar: np.ndarray, count: int, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Greedy maximisation of f(C) = Σ_{i, c in C} s_ic - λ Σ_{b, c in C} s_bc.

    With λ = M / 2n, maximising f over sets of n is to minimise the maximum mean discrepancy from
    all pairs, with s as its kernel: then it is herding by similarity. With λ up to 1/2, f never
    falls as pairs are added, and hardly cares whether they are alike.

    >>> similar = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.0], [0.2, 0.0, 1.0]])
    >>> graph_cut(similar, 2, weight=0.75)[0].tolist()
    [0, 2]

    Paper: https://arxiv.org/abs/2103.00128 (Kaushal et al. 2021)

    Args:
        similar: s, symmetric. Shape: (M, M)
        count: n, how many to choose.
        weight: λ, how much it counts that picks are alike.

    Returns:
        The picks in order, and what each added to f. Shapes: (n,), (n,)

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(similar))
    gains = similar.sum(1, dtype=np.float64) - weight * similar.diagonal()
    picks, added = np.empty(count, np.int64), np.empty(count)
    for k in range(count):
        pick = int(gains.argmax())
        picks[k], added[k] = pick, gains[pick]
        gains -= 2 * weight * similar[pick].astype(np.float64)
        gains[pick] = -np.inf
    return picks, added


def by_graph_cut(pool: Pool, count: int) -> Choice:
    """The selection ``graph-cut``, with λ = M / 2n."""
    check_count(count, len(pool))
    return graph_cut(similarities(pool.everything), count, len(pool) / (2 * count))
