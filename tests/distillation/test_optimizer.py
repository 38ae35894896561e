from __future__ import annotations

import pytest
import torch

from lors.config import DistillConfig
from lors.distillation.optimizer import (
    clip_gradients,
    last_moves,
    make_optimizer,
    set_learning_rates,
)
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank
from tests.distillation.toys import ADAM, Pull, state


def pairs() -> SyntheticPairs:
    return SyntheticPairs(torch.ones(3, 2), torch.ones(3, 2), LowRank(3, rank=1))


def test_every_part_is_a_group_in_a_fixed_order_with_its_rate() -> None:
    rates = {"images": 4.0, "texts": 3.0, "similarity": 2.0, "rates": 1.0}
    optimizer = make_optimizer(pairs(), DistillConfig.model_validate({"learning_rates": rates}))
    found = [(group["name"], group["lr"]) for group in optimizer.param_groups]
    assert found == list(rates.items())


def test_fixed_parts_are_in_no_group_and_have_no_gradient() -> None:
    synthetic = pairs()
    optimizer = make_optimizer(synthetic, DistillConfig(fixed=("similarity", "texts")))
    assert [group["name"] for group in optimizer.param_groups] == ["images", "rates"]
    learned = {name for name, tensor in synthetic.named_parameters() if tensor.requires_grad}
    assert learned == {"images", "rates"}


def test_adam_moves_every_number_by_its_rate_at_first() -> None:
    run = state(40, learning_rates={"images": 0.03, "texts": 0.002}, **ADAM)
    run.step(Pull())
    torch.testing.assert_close(run.synthetic.images.data, torch.full((3, 2), 0.03))
    torch.testing.assert_close(run.synthetic.texts.data, torch.full((3, 2), 0.998))


def test_a_cosine_schedule_falls_from_the_rate_to_zero() -> None:
    run = state(4, learning_rates={"images": 2.0}, schedule="cosine")
    rates = []
    for iteration in range(5):
        set_learning_rates(run.optimizer, run.config, iteration, {})
        rates.append(run.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([2, 1 + 0.5**0.5, 1, 1 - 0.5**0.5, 0])


@pytest.mark.parametrize(("optimizer", "expected"), [("sgd", 1.0), ("adam", 5.0)])
def test_a_move_is_the_last_step_relative_to_where_it_led(optimizer: str, expected: float) -> None:
    """A step of 0.5 to 0.5. Adam's means are not corrected for their start: 0.5 / sqrt(0.01)."""
    settings = {"optimizer": optimizer, "momentum": 0.5, "learning_rates": {"images": 0.5}}
    synthetic = pairs()
    made = make_optimizer(synthetic, DistillConfig.model_validate(settings))
    assert set(last_moves(made).values()) == {0.0}
    synthetic.images.grad = torch.ones(3, 2)
    made.step()
    torch.testing.assert_close(synthetic.images.data, torch.full((3, 2), 0.5))
    moves = last_moves(made)
    assert moves.pop("images") == pytest.approx(expected)
    assert moves == {"texts": 0.0, "similarity": 0.0, "rates": 0.0}


AUTO = {"learning_rates": dict.fromkeys(("images", "texts", "similarity", "rates"), "auto")}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("dim", [2, 4096])
def test_an_automatic_rate_moves_a_part_by_the_same_share_at_any_scale(
    scale: float, dim: int
) -> None:
    """Of an objective that does not depend on the scale, here the cosine with a direction."""
    generator = torch.Generator().manual_seed(0)
    images, direction = torch.randn(2, 5, dim, generator=generator)
    synthetic = SyntheticPairs(scale * images, torch.ones(5, 2))
    optimizer = make_optimizer(synthetic, DistillConfig.model_validate(AUTO))
    before = synthetic.images.detach().clone()
    cosine = torch.nn.functional.cosine_similarity
    cosine(synthetic.images.flatten(), direction.flatten(), dim=0).backward()
    sine = (1 - cosine(images.flatten(), direction.flatten(), dim=0) ** 2) ** 0.5
    optimizer.step()
    moved = (synthetic.images.detach() - before).norm() / before.norm()
    torch.testing.assert_close(moved, 0.01 * sine, rtol=1e-3, atol=0)


def test_an_automatic_rate_clips_what_would_move_a_part_too_far() -> None:
    synthetic = pairs()
    optimizer = make_optimizer(synthetic, DistillConfig.model_validate(AUTO))
    synthetic.images.grad = torch.full((3, 2), 1e6)
    clip_gradients(optimizer)
    optimizer.step()
    torch.testing.assert_close(synthetic.images.data, torch.full((3, 2), 0.98))


def test_a_given_rate_clips_nothing() -> None:
    synthetic = pairs()
    optimizer = make_optimizer(synthetic, DistillConfig())
    synthetic.images.grad = torch.full((3, 2), 1e6)
    clip_gradients(optimizer)
    torch.testing.assert_close(synthetic.images.grad, torch.full((3, 2), 1e6))
