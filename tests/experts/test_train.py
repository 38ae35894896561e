from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import torch

from lors.experts import (
    Snapshot,
    TrajectoryStore,
    expert_origin,
    experts_of,
    train_expert,
    train_missing,
)
from lors.losses import nce
from lors.setting import Setting
from lors.system.progress import Silent

T = TypeVar("T")


def expert(bench: Setting, number: int) -> tuple[torch.Tensor, np.ndarray]:
    snapshots = train_expert(
        bench.model("expert", number),
        bench.real["train"],
        bench.config.experts,
        bench.config.data,
        number,
    )
    thetas, learned = zip(*snapshots, strict=True)
    return torch.stack(thetas), np.stack(learned[1:])


def test_a_trajectory_starts_at_the_initial_weights_and_is_reproducible(bench: Setting) -> None:
    (first, learned), (again, learned_again) = expert(bench, 0), expert(bench, 0)
    other, _ = expert(bench, 1)
    assert first.shape == (bench.config.experts.epochs + 1, sum(bench.flat.sides))
    assert torch.equal(first[0], bench.flat.flatten(bench.model("expert", 0)))
    assert torch.equal(first, again)
    assert np.array_equal(learned, learned_again)
    assert not torch.equal(first, other)


def test_one_epoch_is_plain_sgd_on_infonce_and_notes_what_was_learned(bench: Setting) -> None:
    config = bench.config.experts
    trajectory, learned = expert(bench, 0)
    theta = trajectory[0].requires_grad_()
    keys = (config.seed, "expert", 0, 0)
    for index, images, texts in bench.real["train"].epoch(
        bench.flat.model, config.batch_size, "one", False, *keys
    ):
        logits = bench.flat(theta, images, texts)
        right = logits.argmax(1).numpy() == np.arange(len(index))  # its caption retrieved first
        assert np.array_equal(learned[0, index], right)
        (g,) = torch.autograd.grad(nce(logits), theta)
        theta = (theta - config.rate * g).detach().requires_grad_()
    torch.testing.assert_close(trajectory[1], theta.detach(), rtol=1e-4, atol=1e-5)


def test_the_two_sides_can_have_rates_of_their_own(bench: Setting) -> None:
    config = bench.config.experts.model_copy(update={"epochs": 1, "rate": 1e-9, "text_rate": 0.1})
    model = bench.model("expert", 0)
    snapshots = train_expert(model, bench.real["train"], config, bench.config.data, 0)
    start, end = (snapshot.theta for snapshot in snapshots)
    image, _ = bench.flat.sides
    torch.testing.assert_close(start[:image], end[:image], rtol=0, atol=1e-6)
    assert (end - start)[image:].norm() > 0.01


def test_training_that_was_cut_short_goes_on_to_the_same_bits(bench: Setting) -> None:
    whole, _ = expert(bench, 0)
    setting = (bench.real["train"], bench.config.experts, bench.config.data, 0)
    begun = list(islice(train_expert(bench.model("expert", 0), *setting), 2))
    again = list(train_expert(bench.model("another"), *setting, begun))
    assert torch.equal(torch.stack([snapshot.theta for snapshot in again]), whole)


def test_experts_already_there_are_not_trained_again(
    bench: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*_: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr("lors.setting.workbench.train_expert", again)
    assert not experts_of(bench).missing(bench.config.experts.count)


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


def test_experts_show_their_epochs_and_continue_the_count(bench: Setting, tmp_path: Path) -> None:
    config = bench.config.experts
    store = TrajectoryStore(tmp_path, expert_origin(bench))
    begun = islice(bench._snapshots(1, ()), 3)  # the start and two epochs
    with pytest.raises(RuntimeError):  # nothing after them
        store.add(1, chain(begun, _stop()))
    recorder = Recorder()
    train_missing(store, 2, config.epochs, bench._snapshots, recorder)
    assert recorder.tracked == [
        ("epoch", config.epochs, 0, config.epochs),
        ("epoch", config.epochs, 2, config.epochs - 2),
        ("train experts", 2, 0, 2),
    ]
    whole = experts_of(bench)
    every = range(config.epochs + 1)
    for number in range(2):
        assert torch.equal(store.snapshots(number, every), whole.snapshots(number, every))


def _stop() -> Iterator[Snapshot]:
    raise RuntimeError
    yield
