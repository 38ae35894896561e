from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from lors.config import load_config
from lors.distillation.loop import Distillation
from lors.matching import matcher_of
from lors.matching.second_order import kept, one_sided
from lors.matching.trajectory import TrajectoryMatcher, distance_ratio
from lors.runs import checkpoints
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from lors.training import Batch
from tests import devices


def test_ratio_by_hand() -> None:
    start, target = torch.zeros(3), torch.tensor([1.0, 2.0, 2.0])
    theta = torch.tensor([1.0, 0.0, 1.0])
    assert distance_ratio(theta, start, target, (1, 2)).item() == pytest.approx(5 / 9)
    separate = distance_ratio(theta, start, target, (1, 2), "separate")
    assert separate.item() == pytest.approx(0 / 1 + 5 / 8)


def test_matching_is_a_function_of_the_generator(setting: Setting) -> None:
    matcher = matcher_of(setting)
    losses, gradients = [], []
    for key in (0, 0, 1):
        pairs = start_pairs(setting)
        losses.append(float(matcher.backward(pairs, generator(key))))
        assert pairs.images.grad is not None
        gradients.append(pairs.images.grad)
    assert losses[0] == losses[1] != losses[2]
    assert torch.equal(gradients[0], gradients[1])


def test_every_part_receives_a_gradient_and_fixed_parts_none(setting: Setting) -> None:
    matcher = matcher_of(setting)
    pairs = start_pairs(setting)
    pairs.texts.requires_grad_(False)
    matcher.backward(pairs, generator(0))
    assert pairs.texts.grad is None
    for name in ("images", "rates", "similarity.omega", "similarity.right"):
        gradient = pairs.get_parameter(name).grad
        assert gradient is not None
        assert gradient.abs().sum() > 0, name


@pytest.mark.skipif(devices.name() not in devices.AUTOCAST, reason="no mixed precision there")
@pytest.mark.parametrize("derivative", ["double", "kept", "forward"])
def test_bfloat16_steps_agree_with_full_precision(derivative: str) -> None:
    """bfloat16 has three digits; θ, λ and what is learned keep all of theirs."""

    def gradient(*overrides: str) -> torch.Tensor:
        setting = setting_of(load_config("tiny", [f"matching.derivative={derivative}", *overrides]))
        pairs = start_pairs(setting)
        matcher_of(setting).backward(pairs, generator(0))
        assert pairs.images.grad is not None
        assert pairs.images.grad.dtype == torch.float32
        return pairs.images.grad

    full, mixed = gradient(), gradient("matching.autocast=true")
    assert 0 < (mixed - full).norm() / full.norm() < devices.AUTOCAST[devices.name()]


@pytest.mark.cpu("where a trial ends depends on how a device rounds")
def test_the_network_decides_how_second_derivatives_are_made() -> None:
    def made(*overrides: str) -> object:
        matcher = matcher_of(setting_of(load_config("tiny", overrides)))
        assert isinstance(matcher, TrajectoryMatcher)
        return matcher.derivative

    derivative = made()
    assert isinstance(derivative, partial)
    assert derivative.func is one_sided
    assert not derivative.keywords["kinks"]
    kinked = made("encoder.image=test_resnet")
    assert isinstance(kinked, partial)
    assert kinked.keywords["kinks"]
    assert made("matching.autocast=true") is kept
    with pytest.raises(InputError, match="is wrong by"):
        made("matching.autocast=true", "matching.derivative=one-sided")
    assert made("matching.autocast=true", "matching.memory=0") not in (kept, derivative)


def test_scope_heads_gives_pixels_the_gradient_of_encoding_at_every_step() -> None:
    """Encoding once per iteration and going back through the trunk once changes nothing."""
    heads = setting_of(
        load_config("tiny", ["encoder.scope=heads", "encoder.image_head=linear", "dtype=float64"])
    )
    matcher = matcher_of(heads)
    once = start_pairs(heads)
    matcher.backward(once, generator(0))
    model = heads.flat.model
    again = start_pairs(heads)
    gather = again.gather

    def encode_each(indices: list[torch.Tensor], *others: object) -> list[object]:
        return [
            gather([index], lambda used: model.freeze(again.images[used]))[0] for index in indices
        ]

    again.gather = encode_each  # type: ignore[method-assign,assignment]
    matcher.backward(again, generator(0))
    assert once.images.grad is not None
    assert again.images.grad is not None
    torch.testing.assert_close(once.images.grad, again.images.grad)


def test_phases_learn_their_own_pairs_one_after_the_other(tmp_path: Path) -> None:
    phases = "matching.phases=[{max_start_epoch: 1}, {min_start_epoch: 1, max_start_epoch: 2}]"
    setting = setting_of(load_config("tiny", [phases, "distill.iterations=4"]))

    def run() -> Distillation:
        return Distillation(start_pairs(setting), setting.config.distill, 0)

    whole, matcher = run(), matcher_of(setting)
    received = []
    for step in range(4):
        if step == 1:
            checkpoints.save(tmp_path / "checkpoint.safetensors", whole)
        whole.step(matcher)
        assert whole.synthetic.images.grad is not None
        received.append(whole.synthetic.images.grad.flatten(1).any(1).tolist())
    early, late = [True] * 4 + [False] * 3, [False] * 4 + [True] * 3
    assert received == [early, early, late, late]
    similarity = whole.synthetic.similarity.matrix()
    assert similarity[:4, :4].any()
    assert not similarity[:4, 4:].any()  # never learned together
    assert not similarity[4:, :4].any()
    resumed, matcher = run(), matcher_of(setting)
    checkpoints.load(tmp_path / "checkpoint.safetensors", resumed)
    for _ in range(3):
        resumed.step(matcher)
    assert torch.equal(resumed.synthetic.images, whole.synthetic.images)


def test_the_inner_steps_may_have_a_temperature_of_their_own() -> None:
    """Experts and evaluation keep that of the encoder."""

    def loss(*settings: str) -> float:
        setting = setting_of(load_config("tiny", settings))
        matcher = matcher_of(setting)
        assert setting.flat.model.temperature == setting.model("evaluation").temperature == 0.07
        return float(matcher.backward(start_pairs(setting), generator(0)))

    assert loss() == loss("matching.temperature=0.07") != loss("matching.temperature=0.1")


def test_inner_batches_may_all_be_full() -> None:
    setting = setting_of(load_config("tiny", ["matching.batch_size=3", "matching.steps=4"]))
    pairs, sizes = start_pairs(setting), []
    assert len(pairs) % 3
    gather = pairs.gather

    def noting(indices: list[torch.Tensor], *rest: Any) -> list[Batch]:
        sizes.append([len(index) for index in indices])
        return gather(indices, *rest)

    pairs.gather = noting  # type: ignore[method-assign, assignment]
    for drop_last in (False, True):
        options = setting.config.matching.model_copy(update={"drop_last": drop_last})
        TrajectoryMatcher(setting, options).backward(pairs, generator(0))  # type: ignore[arg-type]
    assert min(sizes[0]) < 3
    assert sizes[1] == [3] * 4
