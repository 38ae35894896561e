"""A source: where pairs come from, and whether it has pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lors.config import DataConfig
from lors.data.pairs import Decoded, Item
from lors.system.progress import Progress

__all__ = ["Source"]

Read = Callable[[DataConfig, Progress], dict[str, list[Item]] | Decoded]


@dataclass(frozen=True)
class Source:
    """Reads pairs as a configuration describes them.

    Args:
        read: lists the items of each split, to be decoded later; or gives pairs that need no
            decoding. Splits that are not among them are held out from train.
        features: whether it gives embeddings of images and texts, which have no pixels.
        built_in: whether the data comes with the package, so that nobody need be told what was
            read.
    """

    read: Read
    features: bool = False
    built_in: bool = False
