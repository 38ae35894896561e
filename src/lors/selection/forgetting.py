"""Forgetting: pairs that training learns and loses again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lors.selection.pool import Choice, Pool
from lors.selection.score import highest
from lors.system.errors import InputError

__all__ = ["by_forgetting", "forgetting", "forgetting_events"]


def forgetting_events(learned: np.ndarray) -> np.ndarray:
    """How often each pair was learned at one epoch and not at the next.

    A pair that was never learned counts T, more than any that was learned can have.

    >>> forgetting_events(np.array([[True, False, True], [False, False, True]])).tolist()
    [1, 2, 0]

    Args:
        learned: which pair was learned at which epoch. Shape: (T, M), bool

    Returns:
        Shape: (M,)

    Raises:
        InputError: ``learned`` is not a matrix of booleans with at least one epoch.
    """
    if learned.ndim != 2 or learned.dtype != bool or not len(learned):
        raise InputError(
            "what was learned must be a matrix of booleans, one row for each epoch and at least "
            f"one, not {learned.dtype} of shape {learned.shape}"
        )
    events = (learned[:-1] & ~learned[1:]).sum(0)
    return np.where(learned.any(0), events, len(learned))


def forgetting(
    learned: Sequence[np.ndarray], count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs with most forgetting events over all training runs, highest first.

    The paper's events are of classification: an example is learned when its class is predicted.
    For image-text pairs, a pair is learned when its caption is retrieved first in its batch.

    Paper: https://arxiv.org/abs/1812.05159 (Toneva et al. 2019)

    Args:
        learned: for each run, which pair was learned at which epoch. Shape of each: (T, M), bool
        count: n, how many to choose.
        rng: breaks ties, which are many.

    Returns:
        The picks in order, and the events of each. Shapes: (n,), (n,)

    Raises:
        InputError: there is no run, the runs differ in their pairs, or ``count`` is not between 1
            and M.
    """
    if not learned:
        raise InputError("forgetting needs at least one training run to count events in")
    runs = [forgetting_events(run) for run in learned]
    sizes = sorted({len(events) for events in runs})
    if len(sizes) > 1:
        raise InputError(
            f"the training runs saw {' and '.join(map(str, sizes))} pairs: "
            "forgetting compares runs on the same pairs"
        )
    order = rng.permutation(sizes[0])
    picks, events = highest(np.sum(runs, 0)[order], count)
    return order[picks], events


def by_forgetting(pool: Pool, count: int) -> Choice:
    """The selection ``forgetting``."""
    return forgetting(pool.learned(), count, pool.rng)
