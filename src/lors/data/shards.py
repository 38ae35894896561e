"""Rows of numbers that lie in several files, read as they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lors.system.errors import InputError

__all__ = ["BLOCK", "Features", "Shard", "ShardedRows", "shard_names", "widened"]

BLOCK = 4096
"""Rows read at a time."""
GAP = 8192
"""Bytes that are faster to read over than to leave out by another read."""


NAME = 240
"""Bytes of a shard's name; with what is put around it, file systems allow about 255."""


@dataclass(frozen=True)
class Shard:
    """Rows of one file, or of an array in memory.

    Args:
        count: how many.
        width: numbers per row.
        dtype: as stored.
        file: where the rows lie in a file: its path and their offset; or
        array: the rows, of a kind of file that is not read in part.
    """

    count: int
    width: int
    dtype: np.dtype[Any]
    file: tuple[Path, int] | None = None
    array: np.ndarray | None = None

    @classmethod
    def of(cls, array: np.ndarray, path: Path | None = None) -> Shard:
        """The rows of an array.

        Args:
            array: Shape: (m, d), or (m, captions, d) for m · captions rows
            path: the file that it is the memory map of, which is then read instead.
        """
        width = array.shape[-1]
        count = int(np.prod(array.shape[:-1]))
        if path is not None and isinstance(array, np.memmap) and array.flags.c_contiguous:
            offset: int = array.offset
            return cls(count, width, array.dtype, file=(path, offset))
        return cls(count, width, array.dtype, array=array.reshape(count, width))

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows in order, as they are stored. Shape of each: (BLOCK or less, d)"""
        for start in range(0, self.count, BLOCK):
            rows = np.arange(start, min(start + BLOCK, self.count))
            yield from (block for _, block in self.take(rows))

    def take(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows, as they are stored: which of those asked for, and their numbers.

        Args:
            rows: ascending. Shape: (m,)
        """
        size = self.width * self.dtype.itemsize
        apart = np.flatnonzero(np.diff(rows) * size > GAP) + 1
        edges = np.union1d(apart, np.arange(0, len(rows), BLOCK))
        stops = np.append(edges[1:], len(rows))
        if self.file is None:
            assert self.array is not None
            for start, stop in zip(edges.tolist(), stops.tolist(), strict=True):
                yield slice(start, stop), self.array[rows[start:stop]]
            return
        path, offset = self.file
        with _opened(path) as file:
            for start, stop in zip(edges.tolist(), stops.tolist(), strict=True):
                first, last = int(rows[start]), int(rows[stop - 1])
                block = np.empty((last + 1 - first, self.width), self.dtype)
                file.seek(offset + first * size)
                if file.readinto(block.reshape(-1).view(np.uint8)) != block.nbytes:
                    raise InputError(f"the array {str(path)!r} is shorter than it was: run again")
                whole = len(block) == stop - start
                yield slice(start, stop), block if whole else block[rows[start:stop] - first]


class ShardedRows:
    """Rows in several files, one shard after the other, as one array of float32 in memory would be.

    Each access reads what it returns and keeps nothing, so that memory does not grow with the
    files, as it does with memory maps.

    >>> rows = ShardedRows([Shard.of(np.eye(2)), Shard.of(np.zeros((1, 2)))], np.array([0, 2]))
    >>> rows.shape, rows[:].tolist(), rows[np.array([1, 0])].tolist()
    ((2, 2), [[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]])

    Args:
        shards: all of one width.
        rows: which of their rows there are; all by default. Shape: (M,)
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, shards: Iterable[Shard], rows: np.ndarray | None = None) -> None:
        self._shards = tuple(shards)
        self._starts = np.cumsum([0, *(shard.count for shard in self._shards)])
        self._rows = rows
        count = int(self._starts[-1]) if rows is None else len(rows)
        self.shape = (count, self._shards[0].width)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """What they would take in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def of(self, rows: np.ndarray) -> ShardedRows:
        """Some of the rows. Shape: (m,)"""
        return ShardedRows(self._shards, rows if self._rows is None else self._rows[rows])

    def __getitem__(self, index: slice | int | np.ndarray) -> np.ndarray:
        """A copy in float32. Shape: (m, d), or (d,) for one row"""
        if isinstance(index, (int, np.integer)):
            return self[np.array([index])][0]
        wanted = np.arange(*index.indices(len(self))) if isinstance(index, slice) else index
        wanted = np.where(wanted < 0, wanted + len(self), wanted)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"there are {len(self)} rows, not {index}")
        found = np.empty((len(wanted), self.shape[1]), np.float32)
        self.read(wanted, found)
        return found

    def read(self, index: np.ndarray, found: np.ndarray) -> None:
        """Read rows that are known to exist into an array. Shapes: (m,), (m, d)"""
        rows = index if self._rows is None else self._rows[index]
        order = None if (np.diff(rows) >= 0).all() else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        cuts = np.searchsorted(ascending, self._starts)
        for place in np.flatnonzero(np.diff(cuts)).tolist():
            first, last = int(cuts[place]), int(cuts[place + 1])
            inside = ascending[first:last] - self._starts[place]
            for part, block in self._shards[place].take(inside):
                here = slice(first + part.start, first + part.stop)
                found[here if order is None else order[here]] = widened(block)


Features = np.ndarray | ShardedRows
"""One row of numbers each, in memory or in files. Shape: (M, d)"""


def shard_names(path: Path) -> list[str]:
    """The names in a list of shards, one per line; none if there is no list.

    Raises:
        InputError: it is damaged, or a name could lead elsewhere.
    """
    if not path.is_file():
        return []
    try:
        names = path.read_text("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the list of shards {str(path)!r}: {error}") from None
    names = names[:-1] if names[-1] == "" else names
    for name in names:
        if not name or len(name.encode()) > NAME or {"\0", "/", os.sep} & set(name):
            raise InputError(
                f"{str(path)!r} is damaged: {name[:60]!r} cannot be the name of a shard; encode "
                "the shards again"
            )
    return names


def widened(block: np.ndarray) -> np.ndarray:
    """Numbers of 16 bits as float32, others as they are. Shape: (m, d)"""
    # For many numbers, torch is several times as fast as numpy.
    many = block.dtype == np.float16 and len(block) > 16
    return torch.from_numpy(block).float().numpy() if many else block


def _opened(path: Path) -> Any:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot read the array {str(path)!r}: {error}") from None
