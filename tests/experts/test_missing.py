from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import pytest
import torch

from lors.experts import Snapshot, TrajectoryStore, expert_origin, experts_of, train_missing
from lors.experts.of_setting import _snapshots
from lors.setting import Setting
from lors.system.progress import Silent

T = TypeVar("T")


class Recorder(Silent):
    """Notes what is tracked, and how many items of it come."""

    def __init__(self) -> None:
        self.tracked: list[tuple[str, int, int, int]] = []

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        came = 0
        for item in items:
            yield item
            came += 1
        if total:
            self.tracked.append((what, total, done, came))


def test_experts_show_their_epochs_and_continue_the_count(setting: Setting, tmp_path: Path) -> None:
    config = setting.config.experts
    store = TrajectoryStore(tmp_path, expert_origin(setting))
    train = partial(_snapshots, setting)
    begun = islice(train(1, ()), 3)  # the start and two epochs
    with pytest.raises(RuntimeError):  # nothing after them
        store.add(1, chain(begun, _stop()))
    recorder = Recorder()
    train_missing(store, 2, config.epochs, train, recorder)
    assert recorder.tracked == [
        ("epoch", config.epochs, 0, config.epochs),
        ("epoch", config.epochs, 2, config.epochs - 2),
        ("train experts", 2, 0, 2),
    ]
    whole = experts_of(setting)
    every = range(config.epochs + 1)
    for number in range(2):
        assert torch.equal(store.snapshots(number, every), whole.snapshots(number, every))


def _stop() -> Iterator[Snapshot]:
    raise RuntimeError
    yield
