"""Pairs and where they come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lors.config import DataConfig
from lors.data.cache import cached_images, fingerprint
from lors.data.embeddings import load_embeddings
from lors.data.huggingface import read_huggingface
from lors.data.karpathy import read_karpathy
from lors.data.known import read_coco, read_flickr30k
from lors.data.pairs import Item, Pairs, Split
from lors.data.scenes import read_scenes
from lors.data.splitting import split_indices
from lors.data.table import read_table
from lors.data.telling import tell_of_items
from lors.data.webdataset import read_webdataset
from lors.system.errors import choose
from lors.system.progress import Progress, Silent

__all__ = ["SOURCES", "Item", "Pairs", "Split", "find_pairs", "load_pairs"]

Decode = Callable[[int], Pairs]
Find = Callable[[DataConfig, Progress], Decode]
Read = Callable[[DataConfig, Progress], dict[str, list[Item]]]


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
    return choose(SOURCES, config.source, "data source")(config, progress)


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Pairs:
    """The dataset a configuration asks for, decoded into the cache; see ``find_pairs``."""
    return find_pairs(config, progress or Silent())(image_size)


def _listed(read: Read) -> Find:
    """A source that lists items, to be decoded later."""

    def find(config: DataConfig, progress: Progress) -> Decode:
        found = read(config, progress)
        chosen = split_indices({name: len(items) for name, items in found.items()}, config)
        splits = {
            name: [found[given][row] for row in rows] for name, (given, rows) in chosen.items()
        }
        if config.root is not None or config.name:  # the built-in scenes need no telling
            tell_of_items(found, splits, progress)

        def decode(image_size: int) -> Pairs:
            decoded = {n: _split(items, image_size, progress) for n, items in splits.items()}
            marks = [f"{name}|{split.fingerprint}" for name, split in decoded.items()]
            return Pairs(fingerprint(*marks), decoded)

        return decode

    return find


def _find_embeddings(config: DataConfig, progress: Progress) -> Decode:
    """Embeddings need no decoding."""
    pairs = load_embeddings(config, progress)
    return lambda image_size: pairs


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


SOURCES: dict[str, Find] = {
    "scenes": _listed(read_scenes),
    "karpathy": _listed(read_karpathy),
    "table": _listed(read_table),
    "flickr30k": _listed(read_flickr30k),
    "coco": _listed(read_coco),
    "huggingface": _listed(read_huggingface),
    "webdataset": _listed(read_webdataset),
    "embeddings": _find_embeddings,
}
