"""The words of captions that lie in files of JSON lines, beside their embeddings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from lors.system.errors import InputError

__all__ = ["ShardedCaptions", "Words"]


class Words(tuple[str, ...]):
    """Captions that are in memory.

    >>> Words(["a", "b", "c"]).of(np.array([2, 0]))
    ['c', 'a']
    """

    def of(self, rows: np.ndarray) -> list[str]:
        """Some of the captions. Shape: (m,)"""
        return [self[row] for row in rows]


class ShardedCaptions(Sequence[str]):
    """Captions that are read one at a time, when they are shown.

    Args:
        files: a line ``{"key": …, "captions": […]}`` for each image, one file per shard.
        images: how many images each shard has. Shape: (shards,)
        counts: how many captions each image has. Shape: (M,)
        rows: which captions there are; all by default. Shape: (C,)
    """

    def __init__(
        self,
        files: Sequence[Path],
        images: Sequence[int],
        counts: np.ndarray,
        rows: np.ndarray | None = None,
    ) -> None:
        self._files, self._images, self._counts, self._rows = files, images, counts, rows
        self._starts = np.cumsum([0, *images])
        self._beyond = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._beyond[-1]) if self._rows is None else len(self._rows)

    def of(self, rows: np.ndarray) -> ShardedCaptions:
        """Some of the captions. Shape: (m,)"""
        chosen = rows if self._rows is None else self._rows[rows]
        return ShardedCaptions(self._files, self._images, self._counts, chosen)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        row = row if self._rows is None else int(self._rows[row])
        image = int(np.searchsorted(self._beyond, row, side="right"))
        place = row - int(self._beyond[image]) + int(self._counts[image])
        shard = int(np.searchsorted(self._starts, image, side="right")) - 1
        return _caption(self._files[shard], image - int(self._starts[shard]), place)


def _caption(path: Path, line: int, place: int) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            found: Any = json.loads(next(islice(file, line, None), ""))
        caption: str = found["captions"][place]
        caption.encode("utf-8")
        return caption
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"line {line + 1} of {str(path)!r} does not give the caption of its image: encode the "
            "shard again, or leave data.annotations.captions out"
        ) from None
