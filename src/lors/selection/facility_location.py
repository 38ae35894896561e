"""Facility location: pairs to one of which every other one is similar."""

from __future__ import annotations

import heapq

import numpy as np
import torch
import torch.nn.functional as F

from lors.selection.candidates import Candidates, check_count
from lors.selection.pool import Choice, Pool
from lors.system.errors import InputError
from lors.system.memory import total_memory

__all__ = ["by_facility_location", "facility_location", "similarities"]

MOST_MEMORY = 0.5
"""The share of the machine's memory that the similarities of all pairs may take."""


def similarities(candidates: Candidates) -> np.ndarray:
    """The cosines of all joint features with each other, none below 0. Shape: (M, M)

    Raises:
        InputError: memory cannot hold them.
    """
    count = len(candidates)
    size = 4 * count**2
    if size > MOST_MEMORY * total_memory(torch.device("cpu")):
        raise InputError(
            f"this selection compares all pairs with each other, which takes {size / 2**30:,.0f} "
            f"GiB for {count} pairs: choose k-center or medoids, or set data.pairs.train to fewer"
        )
    unit = F.normalize(torch.cat([block for _, block in candidates.blocks()]), dim=1)
    return (unit @ unit.T).clamp_(min=0).numpy()


def facility_location(similar: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Greedy maximisation of f(C) = Σ_i max_{c in C} s_ic, which is submodular.

    What a pair adds never grows as others are chosen. So what it added when last asked is a bound,
    and only pairs whose bound is the highest are asked again (lazy greedy): the picks are those of
    the plain greedy algorithm, which reaches at least 1 - 1/e of the best f.

    >>> similar = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> picks, gains = facility_location(similar, 2)
    >>> picks.tolist(), gains.tolist()
    ([0, 2], [1.9, 1.0])

    Papers: https://doi.org/10.1007/BF01588971 (Nemhauser et al. 1978),
    https://proceedings.mlr.press/v37/wei15.html (Wei et al. 2015)

    Args:
        similar: s, symmetric and not negative. Shape: (M, M)
        count: n, how many to choose.

    Returns:
        The picks in order, and what each added to f. Shapes: (n,), (n,)

    Raises:
        InputError: ``count`` is not between 1 and M.
    """
    check_count(count, len(similar))
    best = np.zeros(len(similar), similar.dtype)  # of each pair, to its nearest pick

    def gain(pair: int) -> float:
        return float(np.maximum(similar[pair] - best, 0).sum(dtype=np.float64))

    bounds = [(-gain(pair), pair) for pair in range(len(similar))]
    heapq.heapify(bounds)
    picks, gains = np.empty(count, np.int64), np.empty(count)
    for k in range(count):
        while True:
            _, pair = heapq.heappop(bounds)
            now = (-gain(pair), pair)
            if not bounds or now <= bounds[0]:
                break
            heapq.heappush(bounds, now)
        picks[k], gains[k] = pair, -now[0]
        np.maximum(best, similar[pair], out=best)
    return picks, gains


def by_facility_location(pool: Pool, count: int) -> Choice:
    """The selection ``facility-location``."""
    check_count(count, len(pool))
    return facility_location(similarities(pool.everything), count)
