"""Pairs and where they come from."""

from __future__ import annotations

from lors.config import DataConfig
from lors.data.dataset import SOURCES, Pairs
from lors.data.pairs import Decoded, Item, Split
from lors.data.source import Shapes, Source
from lors.system.progress import Progress, Silent

__all__ = [
    "SOURCES",
    "Decoded",
    "Item",
    "Pairs",
    "Shapes",
    "Source",
    "Split",
    "given_shapes",
    "load_pairs",
]


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Decoded:
    """The dataset a configuration asks for, decoded into the cache."""
    return Pairs({}).find(config, progress or Silent())(image_size)


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
