"""What every initialiser may build on, and what it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.selection import Candidates

__all__ = ["Material", "Real", "Start"]

Real = tuple[np.ndarray, np.ndarray]
"""Real pairs: the index of each image, and that of its caption. Shapes: (n,), (n,)"""


class Start(NamedTuple):
    """Synthetic pairs before distillation.

    Args:
        images: pixels or features. Shape: (N, …)
        texts: text embeddings. Shape: (N, …)
        real: the real pairs that these are or stand for, if there are such.
    """

    images: Tensor
    texts: Tensor
    real: Real | None


@dataclass(frozen=True)
class Material:
    """M real pairs to start from. What is costly is made when an initialiser asks for it.

    Args:
        count: N, how many synthetic pairs there will be.
        drawn: N or more different real pairs, drawn at random.
        features: whether synthetic images are features, so that any vector may be one.
        frozen: whether the joint features are those of frozen trunks.
        tensors: real pairs as synthetic pairs are.
        encode: features of frozen trunks as heads take them, and synthetic texts are.
            Shapes: (N, f), (N, d)
        select: N real pairs by the selection method of that name.
        candidates: the joint features of all images, each with one drawn caption, and that caption.
        averaged: the joint features of all images, each with the mean of its captions.
        generator: draws whatever an initialiser leaves to chance.
    """

    count: int
    drawn: Real
    features: bool
    frozen: bool
    tensors: Callable[[np.ndarray, np.ndarray], tuple[Tensor, Tensor]]
    encode: Callable[[np.ndarray, np.ndarray], tuple[Tensor, Tensor]]
    select: Callable[[str, int], Real]
    candidates: Callable[[], tuple[Candidates, np.ndarray]]
    averaged: Callable[[], Candidates]
    generator: torch.Generator

    def start(self, images: np.ndarray, captions: np.ndarray) -> Start:
        """These real pairs, as they are."""
        return Start(*self.tensors(images, captions), (images, captions))
