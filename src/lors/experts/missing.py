"""Training the experts that are not there yet, divided between ranks or by all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice

import numpy as np
import torch

from lors.experts.store import TrajectoryStore
from lors.experts.train import Snapshot
from lors.system import ranks
from lors.system.locks import one_each
from lors.system.progress import Progress

__all__ = ["train_missing"]

Train = Callable[[int, Sequence[Snapshot]], Iterator[Snapshot]]
"""Trains an expert from the snapshots of its begun training run, if any."""

Follow = Callable[[Iterator[Snapshot], int], Iterator[Snapshot]]
"""Shows the progress of an expert; told how many snapshots its begun training run had."""


def train_missing(
    store: TrajectoryStore,
    count: int,
    epochs: int,
    train: Train,
    progress: Progress,
    together: bool = False,
) -> None:
    """Train those of the first ``count`` experts that are missing.

    Args:
        store: where they are kept.
        count: how many there should be.
        epochs: how many each trains for.
        train: gives the snapshots of an expert.
        progress: reports long-running work: the experts, and the epochs of each.
        together: whether the ranks train each expert together; if not, they divide them.
    """
    todo = store.missing(count)
    follow = partial(_followed, epochs, progress)
    if together:
        todo = ranks.from_rank_zero(lambda: todo)
        for expert in progress.track(todo, "train experts", len(todo)):
            _train_together(store, expert, train, follow)
        return
    one_each(todo, store.claim, partial(_train, store, train, follow), progress, "train experts")


def _followed(
    epochs: int, progress: Progress, snapshots: Iterator[Snapshot], begun: int
) -> Iterator[Snapshot]:
    """The snapshots of an expert, while showing its epochs.

    Those of a training run that is continued come at once, and so does that of the start.
    """
    at_once = max(begun, 1)
    yield from islice(snapshots, at_once)
    yield from progress.track(snapshots, "epoch", epochs, done=at_once - 1)


def _train(store: TrajectoryStore, train: Train, follow: Follow, expert: int) -> None:
    if not store.path(expert).exists():
        begun = store.begun(expert)
        store.add(expert, follow(train(expert, begun), len(begun)))


def _train_together(store: TrajectoryStore, expert: int, train: Train, follow: Follow) -> None:
    """Rank 0 holds and keeps the expert; the others only take part in its training."""
    begun: list[Snapshot] = []
    with ExitStack() as stack:

        def claim() -> int | None:
            stack.enter_context(store.claim(expert, wait=True))
            if store.path(expert).exists():
                return None
            begun.extend(store.begun(expert))
            return len(begun)

        epochs = ranks.from_rank_zero(claim)
        if epochs is None:
            return
        if ranks.rank() == 0:
            store.add(expert, follow(train(expert, begun), len(begun)))
        else:
            unknown = Snapshot(torch.empty(0), np.zeros(0, bool))
            _exhaust(train(expert, [unknown] * epochs))


def _exhaust(items: Iterable[object]) -> None:
    for _ in items:
        pass
