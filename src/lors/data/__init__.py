"""Pairs and where they come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lors.config import DataConfig, names
from lors.data.cache import cached_images, fingerprint
from lors.data.pairs import Item, Pairs, Split
from lors.data.source import Shapes, Source
from lors.data.splitting import split_indices
from lors.data.telling import tell_of_items
from lors.system.progress import Progress, Silent
from lors.system.registry import Registry

__all__ = [
    "SOURCES",
    "Item",
    "Pairs",
    "Shapes",
    "Source",
    "Split",
    "find_pairs",
    "given_shapes",
    "load_pairs",
]

SOURCES: Registry[Source] = names.SOURCES

Decode = Callable[[int], Pairs]


def find_pairs(config: DataConfig, progress: Progress) -> Decode:
    """List the dataset a configuration asks for; decoding it, which is slow, is left to do.

    A val or test split that the source does not have is held out from train.

    Args:
        config: which dataset.
        progress: reports long-running work, and what was read.

    Returns:
        What decodes it into the cache, given the side of the images in pixels.

    Raises:
        InputError: unknown source, unreadable files, or fewer pairs than asked for.
    """
    source = SOURCES.choose(config.source)
    found = source.read(config, progress)
    if isinstance(found, Pairs):
        pairs = found
        return lambda image_size: pairs
    chosen = split_indices({name: len(items) for name, items in found.items()}, config)
    splits = {name: [found[given][row] for row in rows] for name, (given, rows) in chosen.items()}
    if not source.built_in:
        tell_of_items(found, splits, progress)

    def decode(image_size: int) -> Pairs:
        decoded = {name: _split(items, image_size, progress) for name, items in splits.items()}
        marks = [f"{name}|{split.fingerprint}" for name, split in decoded.items()]
        return Pairs(fingerprint(*marks), decoded)

    return decode


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Pairs:
    """The dataset a configuration asks for, decoded into the cache; see ``find_pairs``."""
    return find_pairs(config, progress or Silent())(image_size)


def given_shapes(config: DataConfig) -> Shapes | None:
    """The sizes of the embeddings that a configuration names; None if its data has pixels."""
    source = SOURCES.choose(config.source)
    if not source.features:
        return None
    if source.shapes is not None:
        return source.shapes(config)
    train = load_pairs(config, 0).splits["train"]
    assert train.texts is not None
    return Shapes(len(train), train.images.shape[1], train.texts.shape[1])


def _split(items: list[Item], image_size: int, progress: Progress) -> Split:
    content = (
        part for item in items for part in (item.key, str(len(item.captions)), *item.captions)
    )
    return Split(
        images=cached_images(items, image_size, progress),
        captions=[caption for item in items for caption in item.captions],
        owner=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
        fingerprint=fingerprint(str(image_size), *content),
    )
