"""Standardisation of frozen features: the training mean and one global standard deviation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from lors.data.shards import BLOCK, Features

__all__ = ["Standard"]


class Standard(nn.Module):
    """(x - mean) / scale.

    One deviation over all dimensions keeps their relative sizes, which carry meaning.

    Args:
        mean: Shape: (d,)
        scale: Shape: ()
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @classmethod
    def fit(cls, features: Features, chunk: int = BLOCK) -> Standard:
        """Of an array that may be larger than memory. Shape: (M, d)"""
        count, dim = features.shape
        chunks = [slice(i, i + chunk) for i in range(0, count, chunk)]
        mean = sum((features[c].sum(0, dtype=np.float64) for c in chunks), np.zeros(dim)) / count
        squares = sum(float(((features[c] - mean) ** 2).sum()) for c in chunks)
        scale = max((squares / (count * dim)) ** 0.5, 1e-12)
        return cls(torch.from_numpy(mean).float(), torch.tensor(scale).float())

    def forward(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.scale

    def inverse(self, standardised: Tensor) -> Tensor:
        """The features that were standardised."""
        mean, scale = (part.to(standardised) for part in (self.mean, self.scale))
        return standardised * scale + mean
