"""Random pairs: what every other method must beat."""

from __future__ import annotations

import numpy as np

from lors.selection.candidates import check_count

__all__ = ["at_random"]


def at_random(size: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """``count`` of ``size`` pairs without replacement; all scores are zero."""
    check_count(count, size)
    return rng.choice(size, count, replace=False), np.zeros(count)
