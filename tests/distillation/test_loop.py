from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from lors.config import DistillConfig, load_config
from lors.distillation.loop import Distillation, distill
from lors.matching import matcher_of
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.starts import start_pairs
from lors.system.errors import DivergedError, LorsError


class Pull:
    """A matcher with a known answer: pulls images towards one, with noise from the generator.

    The noise grows with every call, which it must remember.
    """

    learns_rates = False

    def __init__(self, setting: Setting | None = None) -> None:
        self.state: dict[str, torch.Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        calls = self.state.get("calls", torch.tensor(1.0))
        self.state = {"calls": calls + 1}
        noise = 0.001 * calls * torch.randn(synthetic.images.shape, generator=generator)
        loss = ((synthetic.images - 1 - noise) ** 2).mean() + (synthetic.texts**2).mean()
        loss.backward()
        return loss.item()


def state(iterations: int = 40, **settings: Any) -> Distillation:
    given = {"learning_rates": {"images": 1.0, "texts": 1.0}, **settings}
    config = DistillConfig.model_validate({"iterations": iterations, **given})
    pairs = SyntheticPairs(torch.zeros(3, 2), torch.ones(3, 2))
    return Distillation(pairs, config, seed=0)


def test_the_loop_learns() -> None:
    pairs = distill(state(), Pull())
    assert pairs.images.mean().item() == pytest.approx(1, abs=0.1)
    assert pairs.texts.abs().max().item() < 0.01


def test_adam_moves_every_number_by_its_rate_at_first() -> None:
    run = state(40, learning_rates={"images": 0.03, "texts": 0.002}, **ADAM)
    run.step(Pull())
    torch.testing.assert_close(run.synthetic.images.data, torch.full((3, 2), 0.03))
    torch.testing.assert_close(run.synthetic.texts.data, torch.full((3, 2), 0.998))


def test_a_cosine_schedule_falls_from_the_rate_to_zero() -> None:
    run = state(4, learning_rates={"images": 2.0}, schedule="cosine")
    rates = []
    for run.iteration in range(5):
        rates.append(run.learning_rate("images"))
    assert rates == pytest.approx([2, 1 + 0.5**0.5, 1, 1 - 0.5**0.5, 0])


def test_a_diverged_step_of_adam_names_its_part(bench: Setting) -> None:
    run = state(4, learning_rates={"images": 1e20, "texts": 1e-3}, optimizer="adam")
    with pytest.raises(DivergedError, match=r"images moved too far in one step"):
        distill(run, Pull())


def test_fixed_parts_do_not_move() -> None:
    pairs = distill(state(fixed=("images",)), Pull())
    assert not pairs.images.any()
    assert pairs.texts.abs().max().item() < 0.01


ADAM = {"optimizer": "adam", "schedule": "cosine"}


@pytest.mark.parametrize("settings", [{}, {"averaging": 0.9}, ADAM], ids=str)
def test_a_run_resumed_at_any_iteration_ends_with_the_same_bits(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    whole = distill(state(9, checkpoint_every=1, **settings), Pull())
    for cut in range(1, 9):
        first = state(9, **settings)
        path = tmp_path / f"{cut}.safetensors"
        matcher = Pull()
        for _ in range(cut):
            first.step(matcher)
        first.save(path)
        second = state(9, **settings)
        second.resume(path)
        assert second.iteration == cut
        assert torch.equal(distill(second, Pull()).images, whole.images)


def test_the_set_with_the_best_validation_recall_is_kept(tmp_path: Path) -> None:
    recalls = iter([10.0, 30.0, 20.0])
    seen: list[torch.Tensor] = []

    def recall(pairs: SyntheticPairs) -> float:
        seen.append(pairs.images.detach().clone())
        return next(recalls)

    run = state(15, evaluate_every=5)
    pairs = distill(run, Pull(), recall=recall)
    assert torch.equal(pairs.images, seen[1])
    run.save(tmp_path / "c.safetensors")
    again = state(15)
    again.resume(tmp_path / "c.safetensors")
    assert again.best_recall == 30.0
    assert torch.equal(again.best["images"], seen[1])


class Push:
    """A matcher that moves every image by the same step each time."""

    learns_rates = False

    def __init__(self, setting: Setting | None = None) -> None:
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


@pytest.mark.parametrize(
    ("loss", "broken", "message"),
    [
        (math.nan, (), r"matching loss turned non-finite at iteration 2; .*inner_rate"),
        (
            1.0,
            ("texts",),
            r"gradient of texts turned non-finite at iteration 2; .*inner rates 0\.1",
        ),
    ],
)
def test_a_run_that_turns_non_finite_names_the_culprit_and_keeps_its_state(
    loss: float, broken: tuple[str, ...], message: str
) -> None:
    class Break(Pull):
        def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
            value = super().backward(synthetic, generator)
            if run.iteration < 2:
                return value
            for part in broken:
                synthetic.get_parameter(part).grad = torch.full((3, 2), torch.inf)
            return loss

    saved: list[int] = []
    run = state(learning_rates={"images": 0.01, "texts": 0.01})
    run.synthetic.images.data.fill_(5.0)
    with pytest.raises(DivergedError, match=message):
        distill(run, Break(), checkpoint=lambda: saved.append(run.iteration))
    assert saved == [0]
    assert all(p.isfinite().all() for p in run.synthetic.parameters())


def test_a_part_that_jumped_is_named_and_the_good_checkpoint_stays(
    bench: Setting, tmp_path: Path
) -> None:
    config = load_config("tiny", ["distill.learning_rates.images=1e25"])
    run = Distillation(start_pairs(bench), config.distill, 0)
    before = run.synthetic.images.detach().clone()
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(DivergedError, match=r"images moved too far .*learning_rates\.images"):
        distill(run, matcher_of(bench), checkpoint=lambda: run.save(path))
    again = Distillation(start_pairs(bench), config.distill, 0)
    again.resume(path)
    assert torch.equal(again.synthetic.images, before)


def test_fixed_rates_stay_where_they_are() -> None:
    run = state(1, fixed=("rates",), inner_rate=1e-4)
    run.synthetic.rates.data.fill_(1e-5)
    assert distill(run, Pull()).rates.tolist() == pytest.approx([1e-5, 1e-5])


def test_real_distillation_lowers_the_matching_loss(bench: Setting) -> None:
    config = load_config("tiny", ["distill.iterations=20"])
    run = Distillation(start_pairs(bench), config.distill, 0)
    losses: list[float] = []
    distill(run, matcher_of(bench), log=lambda r: losses.append(r["loss"]))
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_inner_rates_that_are_too_large_are_diagnosed(bench: Setting) -> None:
    config = load_config("tiny", ["distill.inner_rate=1e30"])
    pairs = start_pairs(bench)
    pairs.rates.data.fill_(config.distill.inner_rate)
    run = Distillation(pairs, config.distill, 0)
    with pytest.raises(DivergedError, match=r"inner rates 1e\+30"):
        distill(run, matcher_of(bench))


@pytest.mark.parametrize("part", ["images", "texts"])
@pytest.mark.parametrize("factor", [0.0, 1e-30])
def test_pairs_that_are_all_alike_are_blamed_on_the_data(
    bench: Setting, part: str, factor: float
) -> None:
    pairs = start_pairs(bench)
    tensor = getattr(pairs, part).data
    tensor.copy_(factor * tensor)
    run = Distillation(pairs, load_config("tiny").distill, 0)
    tensor.grad = None
    for learned in pairs.parameters():
        learned.grad = torch.zeros_like(learned)
    with pytest.raises(LorsError, match=rf"because the {part} that the set starts with are all"):
        run._check_finite(1.0)


def test_a_part_that_is_slowed_down_stays_so_after_a_resumption(tmp_path: Path) -> None:
    first = state(4)
    first.slow_down("images")
    first.slow_down("images")
    first.slow_down("rates")
    first.save(tmp_path / "c.safetensors")
    second = state(4)
    second.resume(tmp_path / "c.safetensors")
    second.resume(tmp_path / "c.safetensors")  # not slower still
    assert (second.learning_rate("images"), second.learning_rate("texts")) == (0.25, 1.0)
    assert second.synthetic.rates.tolist() == pytest.approx([0.05, 0.05])
    assert torch.equal(distill(first, Pull()).images, distill(second, Pull()).images)
