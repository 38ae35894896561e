"""Pairs and where they come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lors.config import DataConfig
from lors.data.cache import cached_images, fingerprint
from lors.data.karpathy import read_karpathy
from lors.data.pairs import Item, Pairs, Split
from lors.data.scenes import read_scenes
from lors.data.table import read_table
from lors.errors import InputError, choose
from lors.progress import Progress, Silent
from lors.seeding import derive_seed

__all__ = ["SOURCES", "Item", "Pairs", "Split", "load_pairs"]

SOURCES: dict[str, Callable[[DataConfig], dict[str, list[Item]]]] = {
    "scenes": read_scenes,
    "karpathy": read_karpathy,
    "table": read_table,
}


def load_pairs(config: DataConfig, image_size: int, progress: Progress | None = None) -> Pairs:
    """The dataset a configuration asks for, decoded into the cache.

    A val or test split that the source does not have is held out from train.

    Raises:
        InputError: unknown source, unreadable files, or fewer pairs than asked for.
    """
    found = choose(SOURCES, config.source, "data source")(config)
    splits = {name: items for name, items in found.items() if items}
    if "train" not in splits:
        raise InputError(f"data source {config.source!r} holds no training pairs")
    _hold_out(splits, config)
    for name, count in config.pairs.items():
        if len(splits[name]) < count:
            raise InputError(
                f"split {name!r} has {len(splits[name])} pairs, fewer than the {count} asked for: "
                f"lower data.pairs.{name}"
            )
        splits[name] = splits[name][:count]
    keys = [f"{name}|{i.key}|{'|'.join(i.captions)}" for name in splits for i in splits[name]]
    return Pairs(
        fingerprint(str(image_size), *keys),
        {name: _decoded(items, image_size, progress or Silent()) for name, items in splits.items()},
    )


def _hold_out(splits: dict[str, list[Item]], config: DataConfig) -> None:
    """Move a seeded share of train into each of val and test that is missing."""
    share = max(1, round(config.holdout * len(splits["train"])))
    for name in ("val", "test"):
        if name in splits:
            continue
        train = splits["train"]
        if len(train) <= share:
            raise InputError(f"train has {len(train)} pairs, too few to hold out a {name} split")
        order = np.random.default_rng(derive_seed(config.seed, "holdout", name)).permutation(
            len(train)
        )
        splits[name] = [train[i] for i in sorted(order[:share])]
        splits["train"] = [train[i] for i in sorted(order[share:])]


def _decoded(items: list[Item], image_size: int, progress: Progress) -> Split:
    return Split(
        images=cached_images(items, image_size, progress),
        captions=[caption for item in items for caption in item.captions],
        owner=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
    )
