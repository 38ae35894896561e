from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lors.config import DistillConfig
from lors.distillation.loop import distill
from lors.distillation.state import State
from lors.files import artifacts
from lors.runs import checkpoints
from lors.sets.synthetic import SyntheticPairs
from lors.system.errors import InputError
from tests.distillation.toys import ADAM, Pull, state


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint.safetensors"


@pytest.mark.parametrize("settings", [{}, {"averaging": 0.9}, ADAM, {"trajectories": 2}], ids=str)
def test_a_run_resumed_at_any_iteration_ends_with_the_same_bits(
    path: Path, settings: dict[str, Any]
) -> None:
    whole = distill(state(9, checkpoint_every=1, **settings), Pull())
    for cut in range(1, 9):
        first = state(9, **settings)
        matcher = Pull()
        for _ in range(cut):
            first.step(matcher)
        checkpoints.save(path, first)
        second = state(9, **settings)
        checkpoints.load(path, second)
        assert second.iteration == checkpoints.reached(path) == cut
        assert torch.equal(distill(second, Pull()).images, whole.images)


def test_what_is_loaded_is_saved_as_the_same_bytes(path: Path, tmp_path: Path) -> None:
    first = state(4, averaging=0.5, trajectories=2, evaluate_every=1, **ADAM)
    distill(first, Pull(), recall=lambda pairs: 12.5)
    first.slow_down("texts")
    checkpoints.save(path, first)
    second = state(4, averaging=0.5, trajectories=2, **ADAM)
    checkpoints.load(path, second)
    checkpoints.save(tmp_path / "again.safetensors", second)
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


NOW = {"now.images", "now.texts", "now.rates"}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, {"momentum.images", "momentum.texts", "matcher.calls"}),
        ({"momentum": 0, "trajectories": 2}, {"matcher.calls", "matcher1.calls"}),
        (
            {**ADAM, "fixed": ("texts",)},
            {"mean.images", "square.images", "count.images", "matcher.calls"},
        ),
        (
            {"momentum": 0, "averaging": 0.5},
            {"average.images", "average.texts", "average.rates", "matcher.calls"},
        ),
        (
            {"momentum": 0, "evaluate_every": 1},
            {"best.images", "best.texts", "best.rates", "matcher.calls"},
        ),
    ],
    ids=lambda given: str(sorted(given)),
)
def test_the_tensors_have_the_names_that_other_versions_know(
    settings: dict[str, Any], names: set[str], path: Path
) -> None:
    run = state(1, **settings)
    distill(run, Pull(), recall=lambda pairs: 50.0)
    checkpoints.save(path, run)
    header, tensors = artifacts.load(path, "checkpoint")
    assert set(tensors) == NOW | names
    best = 50.0 if settings.get("evaluate_every") else None
    assert (header["iteration"], header["best_recall"], header["slowed"]) == (1, best, {})


def test_the_best_set_is_in_the_checkpoint(path: Path) -> None:
    recalls = iter([10.0, 30.0, 20.0])
    seen: list[torch.Tensor] = []

    def recall(pairs: SyntheticPairs) -> float:
        seen.append(pairs.images.detach().clone())
        return next(recalls)

    run = state(15, evaluate_every=5)
    distill(run, Pull(), recall=recall)
    checkpoints.save(path, run)
    again = state(15)
    checkpoints.load(path, again)
    assert again.best_recall == 30.0
    assert torch.equal(again.best["images"], seen[1])


def test_a_part_that_is_slowed_down_stays_so_after_a_resumption(path: Path) -> None:
    first = state(4)
    first.slow_down("images")
    first.slow_down("images")
    first.slow_down("rates")
    checkpoints.save(path, first)
    second = state(4)
    checkpoints.load(path, second)
    checkpoints.load(path, second)  # not slower still
    assert second.slowed == {"images": 2, "rates": 1}
    assert [group["lr"] for group in second.optimizer.param_groups][:2] == [0.25, 1.0]
    assert second.synthetic.rates.tolist() == pytest.approx([0.05, 0.05])
    assert torch.equal(distill(first, Pull()).images, distill(second, Pull()).images)


def test_a_checkpoint_of_another_run_is_refused_and_changes_nothing(path: Path) -> None:
    other = SyntheticPairs(torch.ones(3, 5), torch.ones(3, 2))
    checkpoints.save(path, State(other, DistillConfig(), seed=0, iteration=7))
    here = state()
    sentence = r"does not fit this run \(now\.images has shape \(3, 5\)\): delete it"
    with pytest.raises(InputError, match=sentence):
        checkpoints.load(path, here)
    assert here.iteration == 0
    assert torch.equal(here.synthetic.texts, torch.ones(3, 2))
    assert not here.synthetic.images.any()


def test_a_checkpoint_with_more_trajectories_is_refused(path: Path) -> None:
    run = state(1, trajectories=2)
    distill(run, Pull())
    checkpoints.save(path, run)
    with pytest.raises(InputError, match=r"does not fit this run \('matcher1'\)"):
        checkpoints.load(path, state(1))
