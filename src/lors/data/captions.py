"""The words of captions that lie in files beside their embeddings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from lors.config import DataConfig
from lors.data import columns
from lors.data.parts import Part
from lors.data.problems import Problems
from lors.data.table import table_rows
from lors.system.errors import InputError
from lors.system.progress import Silent

__all__ = ["ShardedCaptions", "Words", "cleaned", "worded", "words_of"]


PUNCTUATION = str.maketrans(dict.fromkeys('.!"()*#:;~', " "))
WORDS = 30


def cleaned(caption: str) -> str:
    """A caption as the published LoRS code embeds it: in lower case, at most 30 words.

    Most punctuation is left out; commas, hyphens and apostrophes stay.

    >>> cleaned('A dog (brown) runs, fast!  "Hi."')
    'a dog brown runs, fast hi'
    """
    return " ".join(caption.lower().translate(PUNCTUATION).split()[:WORDS])


def worded(captions: Sequence[str], config: DataConfig) -> Sequence[str]:
    """Captions as text trunks get them: cleaned, if a configuration says so."""
    return [cleaned(caption) for caption in captions] if config.clean_captions else captions


class Words(tuple[str, ...]):
    """Captions that are in memory.

    >>> Words(["a", "b", "c"]).of(np.array([2, 0]))
    ('c', 'a')
    """

    def of(self, rows: np.ndarray) -> Words:
        """Some of the captions. Shape: (m,)"""
        return Words(self[row] for row in rows)


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


def words_of(
    files: Sequence[Path], parts: Sequence[Part], counts: np.ndarray
) -> ShardedCaptions | Words:
    """The captions of a split: read when they are shown, if ``lors encode`` wrote them.

    Args:
        files: one per shard.
        parts: the shards.
        counts: how many captions each image has. Shape: (M,)

    Raises:
        InputError: a file cannot be read, or has captions of another number.
    """
    if all(_of_encode(path) for path in files):
        return ShardedCaptions(files, [part.images.count for part in parts], counts)
    found = zip(files, parts, strict=True)
    return Words(text for path, part in found for text in _all_words(path, part))


def _of_encode(path: Path) -> bool:
    """Whether the lines of a file are those of images, with a list of captions each."""
    if path.suffix != ".jsonl":
        return False
    try:
        with path.open(encoding="utf-8") as file:
            return "captions" in json.loads(file.readline(1_000_000))
    except (OSError, ValueError, TypeError, RecursionError):
        return True  # who shows them says what is wrong


def _all_words(path: Path, part: Part) -> list[str]:
    """The captions of a shard."""
    values = _values(path)
    images, texts, counts = part.images.count, part.texts.count, part.counts
    if len(values) == texts and all(isinstance(value, str) for value in values):
        return values
    lists = [value if isinstance(value, list) else [value] for value in values]
    if len(lists) != images or any(map(int.__ne__, map(len, lists), counts.tolist())):
        raise InputError(
            f"the captions {str(path)!r} have {len(values)} rows, for {images} images and {texts} "
            "texts: give a row with the text of each, or a row for each image with the list of "
            "its texts"
        )
    words = [text for texts in lists for text in texts]
    if not all(isinstance(text, str) for text in words):
        raise InputError(f"the captions {str(path)!r} must be text")
    return words


def _values(path: Path) -> list[Any]:
    if path.suffix in columns.SUFFIXES:
        return columns.column_texts(path)
    if path.suffix not in (".csv", ".jsonl"):
        raise InputError(
            f"the captions {str(path)!r} must be a .csv, .jsonl, .parquet, .arrow or .feather file"
        )
    problems = Problems(None, Silent())
    wanted = ("caption",) if path.suffix == ".csv" else ()
    values = [
        (row or {}).get("caption", (row or {}).get("captions"))
        for _, row in table_rows(path, problems, wanted)
    ]
    problems.settle(len(values))
    return values
