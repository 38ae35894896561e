"""Which rows of embeddings can be used: those of finite numbers that belong to an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lors.data.bad_row import BadRowError
from lors.data.problems import Problems
from lors.data.shards import Shard, widened
from lors.system.errors import InputError

__all__ = ["Rows", "check_rows", "kept_rows", "text_counts", "unmatched"]

LISTED = 1000
"""Runs of bad rows that are told apart; the rest of a file is one more."""


@dataclass(frozen=True)
class Rows:
    """What was seen of the rows of a shard.

    Args:
        bad: rows with numbers that are not finite. Shape: (bad,)
        zeros: how many rows are all zeros.
        first: row, if there is one. Shape: (d,)
        constant: the columns in which all rows are like the first. Shape: (d,), bool
    """

    bad: np.ndarray
    zeros: int
    first: np.ndarray | None
    constant: np.ndarray


def check_rows(shard: Shard, where: str, problems: Problems) -> Rows:
    """Look at every number once, and collect the rows that are not finite as float32.

    Args:
        shard: the rows.
        where: names them in messages.
        problems: collects.
    """
    bad, zeros, start = [], 0, 0
    first: np.ndarray | None = None
    constant = np.ones(shard.width, bool)
    largest = np.finfo(np.float32).max
    for block in shard.blocks():
        numbers = widened(block)
        low, high = numbers.min(1), numbers.max(1)
        finite = (-largest <= low) & (high <= largest)  # NaN is in no range
        zeros += int(((low == 0) & (high == 0)).sum())
        if not finite.all():
            bad.append(start + np.flatnonzero(~finite))
        first = numbers[0] if first is None else first
        if constant.any():
            constant[constant] = (numbers[:, constant] == first[constant]).all(0)
        start += len(block)
    rows = np.concatenate(bad) if bad else np.empty(0, np.int64)
    _report(rows, f"the embeddings {where!r} must be finite floating-point numbers", problems)
    return Rows(rows, zeros, first, constant)


def _report(rows: np.ndarray, what: str, problems: Problems) -> None:
    """Collect rows with numbers that are not finite; neighbours are one problem."""
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []
    if len(runs) > LISTED:
        runs = [*runs[:LISTED], np.concatenate(runs[LISTED:])]
    for run in runs:
        which = f"row {run[0]} holds" if len(run) == 1 else f"rows {run[0]} to {run[-1]} hold"
        sentence = f"{what}: {which} numbers that are not finite; encode again, or leave out"
        problems.add(BadRowError(sentence, "rows that are not finite", len(run)))


def text_counts(
    owner: Any, images: np.ndarray, texts: np.ndarray, where: str, problems: Problems
) -> np.ndarray:
    """How many texts each image has. Shape: (M,)

    Args:
        owner: the image of each text, whole numbers that ascend, of shape (C,); None if the shape
            of the texts says it.
        images: Shape: (M, f)
        texts: Shape: (M, d) or (M, captions, d); with owners (C, d)
        where: names the owners in messages.
        problems: collects images without a text.

    Raises:
        InputError: the owners are no such numbers, or numbers of no image.
    """
    count, total = len(images), int(np.prod(texts.shape[:-1]))
    if owner is None:
        return np.full(count, total // max(1, count), np.int32)
    owner = np.asarray(owner)
    if owner.shape != (total,) or owner.dtype.kind not in "iu":
        raise InputError(
            f"the owners {where!r} are {owner.dtype} of shape {owner.shape}: give the image of "
            f"each of the {total} texts, a whole number"
        )
    if total and not (np.diff(owner.astype(np.int64)) >= 0).all():
        raise InputError(f"the owners {where!r} must ascend: sort the texts by their images")
    if total and not 0 <= owner[0] <= owner[-1] < count:
        raise InputError(
            f"the owners {where!r} run from {owner[0]} to {owner[-1]}, but there are {count} "
            "images: count from 0 (in each shard)"
        )
    counts = np.bincount(owner, minlength=count).astype(np.int32)
    without = np.flatnonzero(counts == 0)
    if len(without):
        more = f", nor have {len(without) - 1:,} others" if len(without) > 1 else ""
        sentence = f"image {without[0]} of the owners {where!r} has no caption{more}: leave it out"
        problems.add(BadRowError(sentence, "images without caption", len(without)))
    return counts


def kept_rows(
    counts: np.ndarray, bad_images: np.ndarray, bad_texts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is left without bad rows.

    >>> kept_rows(np.array([2, 0, 2, 1]), np.array([3]), np.array([0]))
    (array([0, 2]), array([1, 2, 3]), array([1, 2], dtype=int32))

    Args:
        counts: texts of each image. Shape: (M,)
        bad_images: images to leave out. Shape: (any,)
        bad_texts: texts to leave out. Shape: (any,)

    Returns:
        The images with a text, ascending; their texts; and how many each image has.
        Shapes: (m,), (c,), (m,)
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    owner[bad_texts] = -1
    owner[np.isin(owner, bad_images)] = -1
    texts = np.flatnonzero(owner >= 0)
    images, left = np.unique(owner[texts], return_counts=True)
    return images, texts, left.astype(np.int32)


def unmatched(
    images: tuple[int, ...], texts: tuple[int, ...], owner: str, what: str = ""
) -> str | None:
    """What to do about as many texts as do not fit the images; None if they fit, one for one.

    >>> print(unmatched((3, 8), (6, 4), "owner"))
    3 images (3, 8) and 6 texts (6, 4) do not fit: if each image has 2 texts, one after the other, \
give them as (3, 2, 4), by texts.reshape(3, 2, 4); otherwise give owner, the image of each of the \
6 texts as a whole number, such as [0, 0, 1, 1, …, 2, 2]

    Args:
        images: the shape (M, f).
        texts: the shape (C, d) or (M, captions, d).
        owner: what to call the image of each text.
        what: begins their names, as in ``"test "``.
    """
    count, each = images[0], texts[0]
    if count == each:
        return None
    start = f"{count} {what}images {images} and {each} {what}texts {texts} do not fit: "
    if len(texts) == 3 or not count:
        return f"{start}give as many of each"
    captions, rest = divmod(each, count)
    example = "[0, 0, 1, 2, 2, 2, …]"
    reshape = ""
    if captions > 1 and not rest:
        shape = (count, captions, texts[1])
        reshape = (
            f"if each image has {captions} texts, one after the other, give them as {shape}, by "
            f"texts.reshape{shape}; otherwise "
        )
        turns = [*[0] * captions, *[1] * captions, "…", *[count - 1] * captions]
        example = "[" + ", ".join(map(str, turns)) + "]" if captions < 6 else example
    return (
        f"{start}{reshape}give {owner}, the image of each of the {each} texts as a whole number, "
        f"such as {example}"
    )
