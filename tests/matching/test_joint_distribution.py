from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config import load_config
from lors.config.matchers import JointDistributionOptions
from lors.encoders import EncodedSplit
from lors.experts import TrajectoryStore
from lors.matching import matcher_of
from lors.matching.joint_distribution import (
    JointDistributionMatcher,
    geodesic_distance,
    joint_distance,
    kernel_distance,
    squared_angles,
)
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from tests.conftest import altered

from .differences import assert_gradient_is_slope

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
KIND = "matching.kind=joint-distribution"
RANGE = [KIND, "matching.min_start_epoch=1", "matching.max_start_epoch=3"]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", ["dtype=float64", *FEATURES, *RANGE]))


def points(count: int, seed: int) -> Tensor:
    draw = torch.randn(count, 4, generator=generator(seed), dtype=torch.double)
    return F.normalize(draw, dim=1)


def test_kernel_distance_equals_a_loop_over_pairs() -> None:
    real, synthetic = points(6, 0), points(3, 1)
    squares = [
        (a - b).square().sum() for i, a in enumerate(real) for j, b in enumerate(real) if i != j
    ]
    median = torch.stack(squares).median().item()

    def mean(left: Tensor, right: Tensor) -> float:
        values = [
            math.exp(-(a - b).square().sum().item() / (2 * median)) for a in left for b in right
        ]
        return sum(values) / len(values)

    expected = mean(real, real) - 2 * mean(real, synthetic) + mean(synthetic, synthetic)
    assert kernel_distance(real, synthetic).item() == pytest.approx(expected)


def test_equal_samples_are_at_no_distance_and_others_are() -> None:
    real = points(6, 0)
    assert kernel_distance(real, real.flip(0)).item() == pytest.approx(0, abs=1e-12)
    assert kernel_distance(real, -real).item() > 1e-3


def test_captions_that_are_exchanged_show() -> None:
    u, v = points(8, 0), points(8, 1)
    v = F.normalize(u + 0.3 * v, dim=1)  # each text near to its image
    assert joint_distance((u, v), (u, v)).item() == pytest.approx(0, abs=1e-12)
    assert kernel_distance(v, v.roll(1, 0)).item() == pytest.approx(0, abs=1e-12)
    assert joint_distance((u, v), (u, v.roll(1, 0))).item() > 0.1


class Counting(TrajectoryStore):
    """Every parameter of expert e after epoch t is 100 e + t."""

    def __init__(self) -> None:
        pass

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        return (100.0 * expert + torch.tensor(list(epochs)).float())[:, None]


def ten_epochs(double: Setting) -> Setting:
    experts = double.config.experts.model_copy(update={"epochs": 10})
    return altered(double, config=double.config.model_copy(update={"experts": experts}))


def test_a_network_lies_between_two_snapshots_of_one_expert(double: Setting) -> None:
    options = JointDistributionOptions(
        min_start_epoch=4, max_start_epoch=8, networks="one expert", kernel="median"
    )
    matcher = JointDistributionMatcher(double, options)
    matcher.setting, matcher.experts = ten_epochs(double), Counting()
    drawn = [matcher._between(generator(key), torch.zeros(1)).item() for key in range(200)]
    for expert in range(2):
        epochs = [value - 100 * expert for value in drawn if value // 100 == expert]
        assert 4 <= min(epochs) < 4.5
        assert 6.5 < max(epochs) <= 7
        assert len({round(epoch, 3) for epoch in epochs}) > 30


def test_a_network_is_the_middle_of_two_experts_at_epochs_of_their_own(double: Setting) -> None:
    matcher = JointDistributionMatcher(double, JointDistributionOptions(networks="two experts"))
    matcher.setting, matcher.experts = ten_epochs(double), Counting()
    drawn = [matcher._between(generator(key), torch.zeros(1)).item() for key in range(200)]
    assert all(value in {50 + halves / 2 for halves in range(2, 21)} for value in drawn)
    assert min(drawn) < 53
    assert max(drawn) > 58


def test_squared_angles_and_their_slope_are_those_of_the_arc_cosine() -> None:
    angles = torch.cat([torch.logspace(-6, 0, 30), torch.linspace(1, 3.1, 20)]).double()
    cosines = angles.cos().requires_grad_()
    found = squared_angles(cosines)
    torch.testing.assert_close(found, angles.square(), rtol=1e-6, atol=1e-12)
    (slope,) = torch.autograd.grad(found.sum(), cosines)
    expected = -2 * angles / angles.sin()
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=0)
    same = torch.ones((), dtype=torch.double, requires_grad=True)
    assert torch.autograd.grad(squared_angles(same), same)[0].item() == pytest.approx(-2)


def test_geodesic_distance_equals_a_loop_over_pairs() -> None:
    real, synthetic = points(6, 0), points(3, 1)

    def mean(left: Tensor, right: Tensor) -> float:
        angles = [math.acos(min(1.0, float(a @ b))) for a in left for b in right]
        return sum(math.exp(-(angle**2) / (2 * 0.5**2)) for angle in angles) / len(angles)

    square = mean(real, real) - 2 * mean(real, synthetic) + mean(synthetic, synthetic)
    assert geodesic_distance(real, synthetic, 0.5).item() == pytest.approx(square**0.5)
    assert geodesic_distance(real, real.flip(0), 0.5).item() < 1e-7


def test_gradient_equals_central_differences(double: Setting) -> None:
    pairs, matcher = start_pairs(double), matcher_of(double)
    right = pairs.get_parameter("similarity.right")
    right.data += 0.1 * torch.randn(right.shape, generator=generator("right")).to(right)
    names = ("images", "texts", "similarity.omega", "similarity.left", "similarity.right")
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(0))), pairs, names
    )
    assert pairs.rates.grad is None


def test_real_pairs_have_only_their_contrastive_loss(double: Setting) -> None:
    real, model = double.real["train"], double.flat.model
    first = np.searchsorted(real.owner, np.arange(7))
    seven = EncodedSplit(real.images[:7], real.texts[first], np.arange(7))
    setting = altered(double, real={**double.real, "train": seven})
    matcher = JointDistributionMatcher(
        setting, JointDistributionOptions(min_start_epoch=1, max_start_epoch=3)
    )
    index = np.arange(7)
    pairs = SyntheticPairs(seven.inputs(index, model), seven.captions(index, model)).double()
    found = float(matcher.backward(pairs, generator(0)))
    logits = matcher.network(pairs.images, pairs.texts)
    expected = double.loss(logits, torch.eye(7).to(logits)).item()
    assert found == pytest.approx(expected, rel=1e-7)  # the root of what is rounded to 1e-16


def test_the_weight_is_that_of_the_kernel_distances(double: Setting) -> None:
    found = []
    for weight in (0, 1, 3):
        options = JointDistributionOptions(min_start_epoch=1, max_start_epoch=3, weight=weight)
        matcher = JointDistributionMatcher(double, options)
        found.append(float(matcher.backward(start_pairs(double), generator(0))))
    assert found[2] - found[0] == pytest.approx(3 * (found[1] - found[0]))
    assert found[1] > found[0]


def test_it_works_with_few_digits() -> None:
    setting = setting_of(load_config("tiny", [*RANGE, "dtype=bfloat16"]))
    assert float(matcher_of(setting).backward(start_pairs(setting), generator(0))) > 0
