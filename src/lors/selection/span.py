"""Which pairs a rank looks at, and what it must hear from the others about theirs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from lors.system import ranks

__all__ = ["Span"]

PARTS = 1024
"""Into how many parts the pairs fall, at most; as many ranks can divide them."""


class Span:
    """This rank's part of M pairs: they are contiguous, and a rank may have none.

    Any number of ranks reads the same chunks and adds up the same sums in the same order, so that
    all of them choose exactly what one would.

    >>> span = Span(10, chunk=4)
    >>> span.start, span.stop, [(c.start, c.stop) for c in span.chunks()]
    (0, 10, [(0, 4), (4, 8), (8, 10)])

    Args:
        pairs: M.
        chunk: pairs read at a time.
    """

    def __init__(self, pairs: int, chunk: int) -> None:
        chunks = -(-pairs // chunk)
        parts = min(PARTS, chunks)
        self.pairs, self.chunk = pairs, chunk
        self._edges = (chunk * (np.arange(parts + 1) * chunks // parts)).clip(max=pairs)
        first, beyond = (parts * r // ranks.size() for r in (ranks.rank(), ranks.rank() + 1))
        self.start, self.stop = int(self._edges[first]), int(self._edges[beyond])

    def __len__(self) -> int:
        return self.stop - self.start

    def chunks(self) -> Iterator[slice]:
        """The pairs of this rank, some at a time."""
        for start in range(self.start, self.stop, self.chunk):
            yield slice(start, min(start + self.chunk, self.stop))

    def here(self, chunk: slice) -> slice:
        """Where a chunk lies in an array of one value for each pair of this rank."""
        return slice(chunk.start - self.start, chunk.stop - self.start)

    def sums(self, width: int) -> np.ndarray:
        """Zeros to ``add`` to. Shape: (parts, width)"""
        return np.zeros((len(self._edges) - 1, width))

    def add(self, sums: np.ndarray, chunk: slice, values: np.ndarray) -> None:
        """Count the sum of a chunk in. Shape: (width,)"""
        sums[np.searchsorted(self._edges, chunk.start, side="right") - 1] += values

    def total(self, sums: np.ndarray) -> np.ndarray:
        """The sum over the pairs of all ranks. Shape: (parts, width) -> (width,)"""
        ranks.all_reduce(
            [torch.from_numpy(sums)]
        )  # each part has one rank, so this adds only zeros
        return sums.sum(0)

    def least(self, values: np.ndarray) -> tuple[int, float]:
        """The pair of the least value among those of all ranks, the first of equals; and its value.

        Shape: (pairs of this rank,)
        """
        place = int(values.argmin()) if len(values) else 0
        own = [[float(values[place]), self.start + place]] if len(values) else []
        value, pair = min(best for found in ranks.gather(own) for best in found)
        return pair, value

    def put(self, values: np.ndarray, pair: int, value: float) -> None:
        """Set the value of a pair, if it is of this rank."""
        if self.start <= pair < self.stop:
            values[pair - self.start] = value
