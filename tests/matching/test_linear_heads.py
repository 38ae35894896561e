from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.matching import matcher_of
from lors.matching.linear_heads import worth_it
from lors.matching.trajectory import TrajectoryMatcher
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator

HEADS = ["encoder.scope=heads", "encoder.image_head=linear", "dtype=float64"]


def gradients(*overrides: str) -> dict[str, torch.Tensor]:
    """The matching loss and what every part gains, after a step that makes S a full one."""
    setting = setting_of(load_config("tiny", [*HEADS, *overrides]))
    matcher, pairs = matcher_of(setting), start_pairs(setting)
    for part, tensors in pairs.parts().items():
        for tensor in tensors:
            tensor.requires_grad_(part not in setting.config.distill.fixed)
    draw = torch.Generator().manual_seed(0)
    for parameter in pairs.similarity.parameters():
        parameter.data += torch.randn(parameter.shape, generator=draw).to(parameter)
    pairs.rates.data = pairs.rates.new_tensor([0.3, 0.7])
    loss = float(matcher.backward(pairs, generator(0)))
    assert isinstance(matcher, TrajectoryMatcher)
    assert (matcher.derivative is None) == ("matching.derivative=double" not in overrides)
    found = {name: p.grad for name, p in pairs.named_parameters() if p.grad is not None}
    return {**found, "loss": torch.tensor(loss)}


@pytest.mark.parametrize("ratio", ["merged", "separate", "merged-published"])
@pytest.mark.parametrize("gradient", ["exact", "tesla"])
@pytest.mark.parametrize("loss", ["wbce", "ence"])
def test_it_equals_the_recursion_over_parameters(gradient: str, ratio: str, loss: str) -> None:
    same = [f"matching.gradient={gradient}", f"matching.ratio={ratio}", f"loss={loss}"]
    ours, expected = gradients(*same), gradients(*same, "matching.derivative=double")
    assert ours.keys() == expected.keys()
    for name in expected:
        error = (ours[name] - expected[name]).norm() / expected[name].norm()
        assert error < 1e-8, name


@pytest.mark.parametrize("gradient", ["exact", "tesla"])
def test_parts_may_be_fixed(gradient: str) -> None:
    same = [f"matching.gradient={gradient}", "distill.fixed=[images, texts, similarity]"]
    ours, expected = gradients(*same), gradients(*same, "matching.derivative=double")
    assert ours.keys() == expected.keys() == {"rates", "loss"}
    torch.testing.assert_close(ours["rates"], expected["rates"])


def test_other_heads_and_long_runs_are_left_to_the_recursion() -> None:
    linear = setting_of(load_config("tiny", HEADS)).flat.model
    width = linear.image.in_features + linear.text.in_features  # type: ignore[operator]
    assert worth_it(linear, int(width))
    assert not worth_it(linear, int(width) + 1)
    mlp = setting_of(load_config("tiny", [*HEADS, "encoder.image_head=mlp"])).flat.model
    assert not worth_it(mlp, 1)
    assert not worth_it(setting_of(load_config("tiny")).flat.model, 1)
