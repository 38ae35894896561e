"""The files of embeddings, read and checked a shard at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lors.data import columns
from lors.data.problems import Problems
from lors.data.rows import Rows, check_rows, kept_rows, text_counts, unmatched
from lors.data.shards import Shard
from lors.files.arrays import read_array, read_tensor
from lors.files.digests import file_digests
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["Kept", "Part", "Reader", "kept_parts", "opened_numbers"]


@dataclass(frozen=True)
class Part:
    """One shard of a split.

    Args:
        images: M rows.
        texts: C rows.
        counts: texts of each image. Shape: (M,)
        looked: what was seen of the rows of both.
    """

    images: Shard
    texts: Shard
    counts: np.ndarray
    looked: tuple[Rows, Rows]

    def is_bad(self) -> bool:
        """Whether there are rows that cannot be used."""
        return not self.counts.all() or any(len(rows.bad) for rows in self.looked)


class Reader:
    """Reads the shards of a dataset, and collects what is wrong with them.

    Args:
        root: the folder that all files lie below.
        problems: collects.
        progress: reports long-running work.
    """

    def __init__(self, root: Path, problems: Problems, progress: Progress) -> None:
        self.root, self.problems, self._progress = root, problems, progress
        self.count = 0
        self.warnings: list[str] = []

    def part(self, images: Path, texts: Path, owner: Path | None, setting: str) -> Part:
        """The images and texts of one shard.

        Args:
            images: the file.
            texts: the file.
            owner: the file with the image of each text, if there is one.
            setting: that would name it.

        Raises:
            InputError: a file cannot be read, or they do not fit together.
        """
        image, text = self._numbers(images, "images"), self._numbers(texts, "texts")
        sides = Shard.of(image, _file(image)), Shard.of(text, _file(text))
        places = (str(images), str(texts))
        looked = [check_rows(*each, self.problems) for each in zip(sides, places, strict=True)]
        self.count += sum(side.count for side in sides)
        if image.ndim != 2 or text.ndim not in (2, 3):
            raise InputError(
                f"image embeddings {image.shape} and text embeddings {text.shape} do not fit: give "
                "(M, f) and (M, d) or (M, captions, d)"
            )
        if text.ndim == 3 and not text.shape[1]:
            raise InputError(
                f"the text embeddings {str(texts)!r} {text.shape} give images no caption"
            )
        if owner is None and (sentence := unmatched(image.shape, text.shape, setting)):
            raise InputError(sentence)
        owners = None if owner is None else self._owners(owner)
        counts = text_counts(owners, image, text, str(owner), self.problems)
        return Part(*sides, counts, (looked[0], looked[1]))

    def warn(self, parts: Sequence[Part], split: str) -> None:
        """Note what is odd and can be used all the same: rows of zeros, columns without change."""
        for place, side in enumerate(("images", "texts")):
            looked = [part.looked[place] for part in parts if part.looked[place].first is not None]
            zeros = sum(rows.zeros for rows in looked)
            if zeros:
                self.warnings.append(f"Warning: {side} of {split} that are all zeros: {zeros:,}.")
            if looked and len({rows.constant.size for rows in looked}) == 1:
                same = np.logical_and.reduce(
                    [rows.constant & (rows.first == looked[0].first) for rows in looked]
                )
                if same.any() and sum(part.images.count for part in parts) > 1:
                    self.warnings.append(
                        f"Warning: of the {same.size:,} numbers of the {side} of {split}, "
                        f"{same.sum():,} are the same in every row."
                    )

    def _numbers(self, path: Path, side: str) -> np.ndarray:
        return opened_numbers(self.root, path, side, self._progress)

    def _owners(self, path: Path) -> np.ndarray:
        if path.suffix in columns.SUFFIXES:
            return columns.column_integers(path, "owner")
        return read_array(path)


def opened_numbers(root: Path, path: Path, side: str, progress: Progress) -> np.ndarray:
    """An array of floating-point numbers, memory-mapped: none of an array file is read.

    Args:
        root: the folder that all files lie below.
        path: of arrays; or of columns, which are unpacked into the cache.
        side: the name of the tensor or column, where there are several.
        progress: reports long-running work.
    """
    if path.suffix in columns.SUFFIXES:
        (digest,) = file_digests(root, [path], progress)
        array = columns.column_array(path, side, digest, progress)
    else:
        array = read_tensor(path, side) if path.suffix == ".safetensors" else read_array(path)
    if not np.issubdtype(array.dtype, np.floating) or not array.ndim or not array.shape[-1]:
        raise InputError(f"the embeddings {str(path)!r} must be finite floating-point numbers")
    return array


def _file(array: np.ndarray) -> Path | None:
    """The file that an array is the memory map of: that of the cache, if it was unpacked."""
    return Path(array.filename) if isinstance(array, np.memmap) and array.filename else None


class Kept(NamedTuple):
    """What is left of a split without bad rows.

    Args:
        images: which. Shape: (m,)
        texts: which. Shape: (c,)
        counts: texts of each of these images. Shape: (m,)
    """

    images: np.ndarray
    texts: np.ndarray
    counts: np.ndarray


def kept_parts(parts: Sequence[Part]) -> Kept:
    """The rows of all shards that can be used.

    Raises:
        InputError: none is left.
    """
    found = []
    at = np.zeros(2, np.int64)
    for part in parts:
        images, texts, counts = kept_rows(part.counts, *(rows.bad for rows in part.looked))
        found.append((at[0] + images, at[1] + texts, counts))
        at += part.images.count, part.texts.count
    kept = Kept(*(np.concatenate(column) for column in zip(*found, strict=True)))
    if not len(kept.images):
        raise InputError("no embedding is left without those that cannot be used")
    return kept
