"""Random pairs: what every other method must beat."""

from __future__ import annotations

import numpy as np

from lors.selection.candidates import check_count
from lors.selection.pool import Choice, Pool

__all__ = ["at_random"]


def at_random(pool: Pool, count: int) -> Choice:
    """``count`` pairs without replacement; all scores are zero."""
    check_count(count, len(pool))
    return pool.rng.choice(len(pool), count, replace=False), np.zeros(count)
