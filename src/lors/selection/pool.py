"""What every selection method may build on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lors.data.shards import Features
from lors.selection.candidates import Candidates

__all__ = ["Choice", "Pool"]

Choice = tuple[np.ndarray, np.ndarray]
"""The chosen pairs, in order of choice, and the score of each. Shapes: (n,), (n,)"""


@dataclass(frozen=True)
class Pool:
    """M real pairs to choose from, each an image with one of its captions.

    What is costly is made when a method asks for it.

    Args:
        size: M.
        candidates: the joint image-text features of the pairs.
        learned: for each expert, which pairs it had learned at which epoch. Shape of each: (T, M)
        embeddings: images and captions in the scorer's joint space, and the caption of each pair.
            Shapes: (M, e), (C, e), (M,)
        rng: draws whatever a method leaves to chance.
    """

    size: int
    candidates: Callable[[], Candidates]
    learned: Callable[[], list[np.ndarray]]
    embeddings: Callable[[], tuple[Features, Features, np.ndarray]]
    rng: np.random.Generator
