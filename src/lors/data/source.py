"""A source: where pairs come from, and whether it has pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lors.config import DataConfig
from lors.data.pairs import Decoded, Item
from lors.system.progress import Progress

__all__ = ["Shapes", "Source"]


class Shapes(NamedTuple):
    """The sizes of embeddings.

    Args:
        pairs: M, how many images the training split has.
        images: f, numbers per image.
        texts: d, numbers per text.
    """

    pairs: int
    images: int
    texts: int


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
        shapes: of embeddings, the sizes, without reading the numbers; default: by reading them.
        shards: lists the tar files of each split, where they can be encoded one by one.
    """

    read: Read
    features: bool = False
    built_in: bool = False
    shapes: Callable[[DataConfig], Shapes] | None = None
    shards: Callable[[DataConfig], dict[str, list[Path]]] | None = None
