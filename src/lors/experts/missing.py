"""Training the experts that are not there yet, divided between ranks or by all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
import torch

from lors import ranks
from lors.experts.store import TrajectoryStore
from lors.experts.train import Snapshot
from lors.locks import one_each
from lors.progress import Progress

__all__ = ["train_missing"]

Train = Callable[[int, Sequence[Snapshot]], Iterator[Snapshot]]
"""Trains an expert from the snapshots of its begun training run, if any."""


def train_missing(
    store: TrajectoryStore, count: int, train: Train, progress: Progress, together: bool = False
) -> None:
    """Train those of the first ``count`` experts that are missing.

    Args:
        store: where they are kept.
        count: how many there should be.
        train: gives the snapshots of an expert.
        progress: who to tell.
        together: whether the ranks train each expert together; if not, they divide them.
    """
    todo = store.missing(count)
    if together:
        todo = ranks.first(lambda: todo)
        for expert in progress.track(todo, "train experts", len(todo)):
            _train_together(store, expert, train)
        return
    one_each(todo, store.claim, partial(_train, store, train), progress, "train experts")


def _train(store: TrajectoryStore, train: Train, expert: int) -> None:
    if not store.path(expert).exists():
        store.add(expert, train(expert, store.begun(expert)))


def _train_together(store: TrajectoryStore, expert: int, train: Train) -> None:
    """Rank 0 holds and keeps the expert; the others only take part in its training."""
    begun: list[Snapshot] = []
    with ExitStack() as stack:

        def claim() -> int | None:
            stack.enter_context(store.claim(expert, wait=True))
            if store.path(expert).exists():
                return None
            begun.extend(store.begun(expert))
            return len(begun)

        epochs = ranks.first(claim)
        if epochs is None:
            return
        if ranks.rank() == 0:
            store.add(expert, train(expert, begun))
        else:
            unknown = Snapshot(torch.empty(0), np.zeros(0, bool))
            _exhaust(train(expert, [unknown] * epochs))


def _exhaust(items: Iterable[object]) -> None:
    for _ in items:
        pass
