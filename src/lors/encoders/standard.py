"""Standardisation of frozen features: the training mean and one global standard deviation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from lors.data.shards import BLOCK, Features
from lors.system.errors import InputError

__all__ = ["Standard"]

ROUNDING = 1e-6
"""Differences of this share of the mean are rounding, in float32."""
SMALLEST = 1e-12
"""Norms below this are taken for zero when embeddings are normalised."""


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
    def fit(cls, features: Features, what: str = "features", chunk: int = BLOCK) -> Standard:
        """Of an array that may be larger than memory.

        Args:
            features: Shape: (M, d)
            what: they are, for messages.
            chunk: rows read at a time.

        Raises:
            InputError: all rows are alike, so that nothing can be learned from them.
        """
        count, dim = features.shape
        chunks = [slice(i, i + chunk) for i in range(0, count, chunk)]
        mean = sum((features[c].sum(0, dtype=np.float64) for c in chunks), np.zeros(dim)) / count
        squares = sum(float(((features[c] - mean) ** 2).sum()) for c in chunks)
        scale = (squares / (count * dim)) ** 0.5
        _check_spread(scale, float(np.abs(mean).max(initial=0.0)), what)
        return cls(torch.from_numpy(mean).float(), torch.tensor(scale).float())

    def forward(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.scale

    def inverse(self, standardised: Tensor) -> Tensor:
        """The features that were standardised."""
        mean, scale = (part.to(standardised) for part in (self.mean, self.scale))
        return standardised * scale + mean


def _check_spread(scale: float, mean: float, what: str) -> None:
    """Refuse numbers that do not differ, or by no more than they are rounded."""
    if scale <= ROUNDING * mean or scale == 0:
        raise InputError(
            f"the {what} of the training data are all alike (they differ by {scale:.2g} around "
            f"{mean:.2g}), so nothing can be learned from them: check the data and the encoder"
        )
    if scale < SMALLEST:
        raise InputError(
            f"the {what} of the training data are too small (they differ by {scale:.2g}): multiply "
            "them all by one large number"
        )
