"""Pairs and where they come from."""

from __future__ import annotations

from lors.config import DataConfig
from lors.data.dataset import SOURCES, Pairs
from lors.data.pairs import Decoded, Item, Split
from lors.data.source import Source
from lors.system.progress import Progress, Silent

__all__ = ["SOURCES", "Decoded", "Item", "Pairs", "Source", "Split", "load_pairs"]


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Decoded:
    """The dataset a configuration asks for, decoded into the cache."""
    return Pairs({}).find(config, progress or Silent())(image_size)
