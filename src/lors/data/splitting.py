"""Which pairs go into which split: hold out what is missing, cut to what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from lors.config import DataConfig
from lors.system.errors import InputError
from lors.system.seeding import derive_seed

__all__ = ["split_indices", "split_items"]

T = TypeVar("T")


def split_indices(
    given: Mapping[str, int], config: DataConfig
) -> dict[str, tuple[str, np.ndarray]]:
    """For each of train, val and test, which pairs of which given split it takes.

    A val or test split that is not given is a seeded share of train.

    Args:
        given: how many pairs each given split has.
        config: the share, the seed, and how many pairs are asked for.

    Returns:
        The given split, and the indices in it, ascending.
    """
    for name in given:
        if name not in ("train", "val", "test"):
            raise InputError(f"split {name!r} is none of train, val, test: rename it")
    splits = {name: (name, np.arange(count)) for name, count in given.items() if count}
    if "train" not in splits:
        raise InputError(f"data source {config.source!r} holds no training pairs")
    share = max(1, round(config.holdout * given["train"]))
    for name in ("val", "test"):
        if name in splits:
            continue
        _, train = splits["train"]
        if len(train) <= share:
            raise InputError(f"train has {len(train)} pairs, too few to hold out a {name} split")
        rng = np.random.default_rng(derive_seed(config.seed, "holdout", name))
        order = rng.permutation(len(train))
        splits[name] = "train", train[np.sort(order[:share])]
        splits["train"] = "train", train[np.sort(order[share:])]
    for asked, count in config.pairs.items():
        source, rows = splits[asked]
        if len(rows) < count:
            raise InputError(
                f"split {asked!r} has {len(rows)} pairs, fewer than the {count} asked "
                f"for: lower data.pairs.{asked}"
            )
        splits[asked] = source, rows[:count]
    return splits


def split_items(given: Mapping[str, Sequence[T]], config: DataConfig) -> dict[str, list[T]]:
    """What each of train, val and test takes of the given splits; see ``split_indices``."""
    chosen = split_indices({name: len(items) for name, items in given.items()}, config)
    return {name: [given[split][row] for row in rows] for name, (split, rows) in chosen.items()}
