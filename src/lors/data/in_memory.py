"""Pairs that a caller has in memory, by split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lors.config import DataConfig
from lors.data.arrays import decoded_arrays
from lors.data.embeddings import GivenEmbeddings
from lors.data.pairs import Decoded, Item
from lors.data.source import Source
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["ARRAYS", "OBJECTS", "Given", "given_splits", "length", "whole"]

Given = list[Item] | GivenEmbeddings
"""A split: images with captions, or embeddings."""


def given_splits(val: Any, test: Any, what: str) -> list[tuple[str, Any]]:
    """The splits that are given, by name, each a tuple of parts."""
    given = [(name, split) for name, split in (("val", val), ("test", test)) if split is not None]
    for name, split in given:
        if not isinstance(split, (tuple, list)) or len(split) not in (2, 3):
            raise InputError(f"{name} is a {type(split).__name__}: give {what}")
    return given


def whole(given: Mapping[str, Given], config: DataConfig) -> dict[str, list[Item]] | Decoded:
    """All splits, as a source gives them."""
    items = {name: split for name, split in given.items() if isinstance(split, list)}
    if items:
        return items
    arrays = {n: split for n, split in given.items() if isinstance(split, GivenEmbeddings)}
    return decoded_arrays(arrays, config)


def length(split: Given) -> int:
    """How many images a split has."""
    return len(split) if isinstance(split, list) else len(split.images)


def _gone(config: DataConfig, progress: Progress) -> Decoded:
    raise InputError(
        "the real pairs were given in Python, not as files: give them again, as in "
        "lors.evaluate(distilled, test=(images, texts))"
    )


ARRAYS, OBJECTS = Source(_gone, features=True), Source(_gone)
