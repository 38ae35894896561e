"""Herding: pairs whose mean is the mean of all."""

from __future__ import annotations

import numpy as np

from lors.selection.candidates import Candidates, check_count
from lors.selection.pool import Choice, Pool

__all__ = ["by_herding", "herding"]


def herding(candidates: Candidates, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Greedy mean matching, without replacement.

    Each pick is the candidate that brings the mean of the picks nearest to the mean of all. It is
    exact, and reads the candidates once for each pick. Any number of first picks is a selection of
    its own.

    Paper: https://dl.acm.org/doi/10.1145/1553374.1553517 (Welling 2009)

    Args:
        candidates: joint features of M pairs.
        count: n, how many to choose.

    Returns:
        The picks in order, and how far their mean was from the mean of all after each.
        Shapes: (n,), (n,)

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(candidates))
    picks, distances = np.empty(count, np.int64), np.empty(count)
    span, norms = candidates.span, candidates.norms()
    total = np.zeros(candidates.width)
    for k in range(count):
        # The mean of all is 0, so argmin ‖0 - (Σ + x)/(k + 1)‖² = argmin ‖x‖² + 2 Σᵀx.
        objective = norms + 2 * candidates.dot(total) if k else norms
        pick, _ = span.least(objective)
        span.put(norms, pick, np.inf)
        total += candidates.row(pick)
        picks[k] = pick
        distances[k] = np.linalg.norm(total) / (k + 1)
    return picks, distances


def by_herding(pool: Pool, count: int) -> Choice:
    """The selection ``herding``."""
    return herding(pool.candidates, count)
