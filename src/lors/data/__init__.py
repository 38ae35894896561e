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
from lors.data.webdataset import read_webdataset
from lors.errors import choose
from lors.progress import Progress, Silent

__all__ = ["SOURCES", "Item", "Pairs", "Split", "load_pairs"]

Load = Callable[[DataConfig, int, Progress], Pairs]
Read = Callable[[DataConfig], dict[str, list[Item]]]


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Pairs:
    """The dataset a configuration asks for, decoded into the cache.

    A val or test split that the source does not have is held out from train.

    Raises:
        InputError: unknown source, unreadable files, or fewer pairs than asked for.
    """
    load = choose(SOURCES, config.source, "data source")
    return load(config, image_size, progress or Silent())


def _decoded(read: Read) -> Load:
    """A source that lists items, as one that gives decoded pairs."""

    def load(config: DataConfig, image_size: int, progress: Progress) -> Pairs:
        found = read(config)
        chosen = split_indices({name: len(items) for name, items in found.items()}, config)
        splits = {
            name: _split([found[given][i] for given, i in rows], image_size, progress)
            for name, rows in chosen.items()
        }
        marks = [f"{name}|{split.fingerprint}" for name, split in splits.items()]
        return Pairs(fingerprint(*marks), splits)

    return load


def _split(items: list[Item], image_size: int, progress: Progress) -> Split:
    return Split(
        images=cached_images(items, image_size, progress),
        captions=[caption for item in items for caption in item.captions],
        owner=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
        fingerprint=fingerprint(
            str(image_size), *(f"{item.key}|{'|'.join(item.captions)}" for item in items)
        ),
    )


SOURCES: dict[str, Load] = {
    "scenes": _decoded(read_scenes),
    "karpathy": _decoded(read_karpathy),
    "table": _decoded(read_table),
    "flickr30k": _decoded(read_flickr30k),
    "coco": _decoded(read_coco),
    "huggingface": _decoded(read_huggingface),
    "webdataset": _decoded(read_webdataset),
    "embeddings": load_embeddings,
}
