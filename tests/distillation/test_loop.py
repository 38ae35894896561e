from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lors.config import load_config
from lors.distillation.loop import Distillation, distill
from lors.matching import matcher_of
from lors.runs import checkpoints
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.starts import start_pairs
from lors.system.errors import DivergedError
from tests.distillation.toys import Pull, state


def test_the_loop_learns() -> None:
    pairs = distill(state(), Pull())
    assert pairs.images.mean().item() == pytest.approx(1, abs=0.1)
    assert pairs.texts.abs().max().item() < 0.01


def test_fixed_parts_do_not_move() -> None:
    pairs = distill(state(fixed=("images",)), Pull())
    assert not pairs.images.any()
    assert pairs.texts.abs().max().item() < 0.01


def test_the_set_with_the_best_validation_recall_is_kept() -> None:
    recalls = iter([10.0, 30.0, 20.0])
    seen: list[torch.Tensor] = []

    def recall(pairs: SyntheticPairs) -> float:
        seen.append(pairs.images.detach().clone())
        return next(recalls)

    run = state(15, evaluate_every=5)
    pairs = distill(run, Pull(), recall=recall)
    assert torch.equal(pairs.images, seen[1])
    assert run.best_recall == 30.0


def test_a_run_ends_when_validation_recall_no_longer_rises(tmp_path: Path) -> None:
    """The best is after 4 iterations, so after 4 + 3 · 2 it has waited for three evaluations."""
    recalls = {2: 10.0, 4: 30.0, 6: 20.0, 8: 30.0, 10: 25.0}
    run = state(40, evaluate_every=2, patience=3, checkpoint_every=40)
    saved = tmp_path / "checkpoint.safetensors"
    kept = distill(
        run,
        Pull(),
        recall=lambda pairs: recalls[run.iteration],
        checkpoint=lambda: checkpoints.save(saved, run),
    )
    assert (run.iteration, run.best_iteration) == (10, 4)
    again = state(40, evaluate_every=2, patience=3, checkpoint_every=40)
    checkpoints.load(saved, again)
    same = distill(again, Pull(), recall=lambda pairs: pytest.fail("it has ended"))
    assert torch.equal(kept.images, same.images)


class Push:
    """A matcher that moves every image by the same step each time."""

    def __init__(self, setting: object = None, options: object = None) -> None:
        self.state: dict[str, torch.Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        synthetic.images.grad = -torch.ones_like(synthetic.images)
        return 0.0


def test_an_average_of_the_set_is_evaluated_and_kept() -> None:
    """After i steps of 1 from 0, the set is i and its average Σ_{j=1..i} (1 - a) a^{i-j} j."""
    seen: list[torch.Tensor] = []

    def recall(pairs: SyntheticPairs) -> float:
        seen.append(pairs.images.detach().clone())
        return 0.0

    settings: dict[str, Any] = {"momentum": 0, "averaging": 0.8}
    run = state(6, evaluate_every=2, **settings)
    distill(run, Push(), recall=recall)
    expected = [sum(0.2 * 0.8 ** (i - j) * j for j in range(1, i + 1)) for i in (2, 4, 6)]
    assert [images.mean().item() for images in seen] == pytest.approx(expected)
    last = distill(state(6, **settings), Push())
    assert last.images.mean().item() == pytest.approx(expected[-1])
    assert torch.equal(last.texts, torch.ones(3, 2))


def test_a_part_that_jumped_is_named_and_the_good_checkpoint_stays(
    setting: Setting, tmp_path: Path
) -> None:
    config = load_config("tiny", ["distill.learning_rates.images=1e25"])
    run = Distillation(start_pairs(setting), config.distill, 0)
    before = run.synthetic.images.detach().clone()
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(DivergedError, match=r"images moved too far .*learning_rates\.images"):
        distill(run, matcher_of(setting), checkpoint=lambda: checkpoints.save(path, run))
    again = Distillation(start_pairs(setting), config.distill, 0)
    checkpoints.load(path, again)
    assert torch.equal(again.synthetic.images, before)


def test_fixed_rates_stay_where_they_are() -> None:
    run = state(1, fixed=("rates",), inner_rate=1e-4)
    run.synthetic.rates.data.fill_(1e-5)
    assert distill(run, Pull()).rates.tolist() == pytest.approx([1e-5, 1e-5])


def test_real_distillation_lowers_the_matching_loss(setting: Setting) -> None:
    config = load_config("tiny", ["distill.iterations=20"])
    run = Distillation(start_pairs(setting), config.distill, 0)
    losses: list[float] = []
    distill(run, matcher_of(setting), log=lambda r: losses.append(r["loss"]))
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_inner_rates_that_are_too_large_are_diagnosed(setting: Setting) -> None:
    config = load_config("tiny", ["distill.inner_rate=1e30"])
    pairs = start_pairs(setting)
    pairs.rates.data.fill_(config.distill.inner_rate)
    run = Distillation(pairs, config.distill, 0)
    with pytest.raises(DivergedError, match=r"inner rates 1e\+30"):
        distill(run, matcher_of(setting))
