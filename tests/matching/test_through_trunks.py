from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.losses import soft_nce
from lors.matching import matcher_of
from lors.matching.hindsight import HindsightMatcher
from lors.matching.matcher import add_gradients
from lors.matching.teachers import Teachers
from lors.matching.unroll import train_differentiably
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator

from .differences import assert_gradient_is_slope

SETTINGS = [
    *("dtype=float64", "matching.kind=hindsight", "matching.real_batch_size=20"),
    *("matching.steps=4", "evaluate.batch_size=5", "encoder.scope=image", "matching.noise=0"),
]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", SETTINGS))


def test_the_gradient_is_the_slope_of_the_objective() -> None:
    setting = setting_of(load_config("tiny", [*SETTINGS, "matching.noise=0.3"]))
    matcher = matcher_of(setting)
    names = ["images", "texts", "rates", "similarity.omega", "similarity.right"]
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(7))), start_pairs(setting), names
    )


def test_it_is_the_gradient_that_autograd_finds_through_all_steps(double: Setting) -> None:
    """The same network, batches, momentum, weight decay, schedule and real pairs."""
    matcher, found = matcher_of(double), {}
    assert isinstance(matcher, HindsightMatcher)
    assert matcher.trunks is not None
    for way in (_by_autograd, _by_adjoint):
        pairs = start_pairs(double)
        objective = way(double, matcher, pairs)
        grads = {name: p.grad for name, p in pairs.named_parameters() if p.grad is not None}
        found[way] = {"objective": objective.detach(), **grads}
    ours, reference = found[_by_adjoint], found[_by_autograd]
    assert set(ours) == set(reference) >= {"images", "texts", "rates", "similarity.right"}
    for name, expected in reference.items():
        assert (ours[name] - expected).norm() <= 1e-3 * expected.norm(), name


STEPS, PACE = [torch.arange(5), torch.tensor([5, 6, 2])], [1.0, 0.1]


def _by_adjoint(setting: Setting, matcher: HindsightMatcher, pairs: SyntheticPairs) -> Tensor:
    assert matcher.trunks is not None
    return matcher.trunks.backward(setting.model("a"), pairs, STEPS, PACE, generator(1))


def _by_autograd(setting: Setting, matcher: HindsightMatcher, pairs: SyntheticPairs) -> Tensor:
    model, protocol = setting.model("a"), setting.config.evaluate
    every = pairs.gather([torch.arange(len(pairs))], pairs.images.__getitem__)[0]
    sides = train_differentiably(
        model,
        every,
        STEPS,
        setting.loss,
        [pairs.rates * pace for pace in PACE],
        protocol.momentum,
        protocol.weight_decay,
    )
    real = setting.real_batch(generator(1), matcher.options.real_batch_size)
    targets = matcher.teachers.cosines(*real) / matcher.options.teacher_temperature
    outputs = [side(part) for side, part in zip(sides, real, strict=True)]
    objective = soft_nce(model.logits(*outputs), targets)
    add_gradients(objective, pairs)
    return objective


def test_teachers_remember_what_they_see_in_the_training_images(double: Setting) -> None:
    teachers, numbers = Teachers(double), np.array([3, 0, 7])
    images, captions, inputs = double.drawn_real(generator(2), 20)
    texts = double.real["train"].captions(captions, double.flat.model)
    torch.testing.assert_close(
        teachers.cosines(images, texts), teachers.cosines(inputs, texts), rtol=1e-5, atol=1e-6
    )
    some = teachers.cosines(numbers, texts[:3])
    assert some.shape == (3, 3)
    assert not torch.equal(some[0], some[1])


def test_fixed_parts_get_no_gradient(double: Setting) -> None:
    pairs = start_pairs(double)
    for fixed in (pairs.images, pairs.rates):
        fixed.requires_grad_(False)
    matcher_of(double).backward(pairs, generator(7))
    assert pairs.images.grad is None
    assert pairs.rates.grad is None
    assert pairs.texts.grad is not None
    assert pairs.texts.grad.any()
