"""What every matcher is given, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

from lors.config import Config
from lors.encoders import EncodedSplit, FlatModel
from lors.experts import TrajectoryStore
from lors.losses import Loss
from lors.synthetic import SyntheticPairs

__all__ = ["Matcher", "Setting"]


@dataclass(frozen=True)
class Setting:
    """What a matcher may build on.

    Args:
        config: the whole configuration.
        flat: the dual encoder as a function of θ.
        loss: the contrastive loss.
        real: the training split.
        experts: trains the experts that are missing and gives them all.
    """

    config: Config
    flat: FlatModel
    loss: Loss
    real: EncodedSplit
    experts: Callable[[], TrajectoryStore]


class Matcher(Protocol):
    """Compares synthetic data with real data."""

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        """Add the gradient of the matching loss to every part that requires one; return the loss.

        All randomness comes from the generator.
        """
        ...
