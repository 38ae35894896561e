from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.distillation.loop import Distillation
from lors.encoders import DualEncoder, EncodedSplit
from lors.matching import matcher_of
from lors.matching.distribution import mean_distance
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from tests.conftest import altered

from .differences import assert_gradient_is_slope

KIND = "matching.kind=distribution"


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", [KIND, "dtype=float64"]))


@pytest.fixture(scope="module")
def setting() -> Setting:
    return setting_of(load_config("tiny", [KIND]))


def seven(setting: Setting) -> EncodedSplit:
    """Seven real pairs of one caption each: a real batch is always all of them."""
    real = setting.real["train"]
    first = np.searchsorted(real.owner, np.arange(7))
    return EncodedSplit(real.images[:7], real.texts[first], np.arange(7))


def test_distance_equals_a_loop_over_dimensions(rng: torch.Generator) -> None:
    real, synthetic = torch.randn(6, 4, generator=rng), torch.randn(3, 4, generator=rng)
    expected = sum((real[:, i].mean() - synthetic[:, i].mean()).item() ** 2 for i in range(4))
    assert mean_distance(real, synthetic).item() == pytest.approx(expected)


def test_gradient_equals_central_differences(double: Setting) -> None:
    matcher, pairs = matcher_of(double), start_pairs(double)
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(0))), pairs, ("images", "texts")
    )


def test_the_distance_is_of_image_means_plus_text_means(double: Setting) -> None:
    real, model, pairs = seven(double), double.model("known"), start_pairs(double)
    setting = altered(double, real={"train": real}, model=lambda seed: model)
    found = float(matcher_of(setting).backward(pairs, generator(0)))
    index = np.arange(7)
    u = model.embed_images(real.inputs(index, model)), model.embed_images(pairs.images)
    v = model.embed_texts(real.captions(index, model)), model.embed_texts(pairs.texts)
    expected = sum((a.mean(0) - b.mean(0)).norm().item() ** 2 for a, b in (u, v))
    assert found == pytest.approx(expected, rel=1e-9)


def test_real_pairs_are_at_no_distance_from_themselves(double: Setting) -> None:
    real, model = seven(double), double.flat.model
    setting = altered(double, real={"train": real})
    index = np.arange(7)
    pairs = SyntheticPairs(real.inputs(index, model), real.captions(index, model)).double()
    assert float(matcher_of(setting).backward(pairs, generator(0))) == pytest.approx(0, abs=1e-20)


def test_every_iteration_draws_a_network_and_keeps_nothing(setting: Setting) -> None:
    seeds: list[int] = []

    def model(seed: int) -> DualEncoder:
        seeds.append(seed)
        return setting.model(seed)

    matcher = matcher_of(altered(setting, model=model))
    losses, gradients = [], []
    for key in (0, 0, 1):
        pairs = start_pairs(setting)
        losses.append(float(matcher.backward(pairs, generator(key))))
        assert pairs.images.grad is not None
        gradients.append(pairs.images.grad)
        assert matcher.state == {}
    assert seeds[0] == seeds[1] != seeds[2]
    assert losses[0] == losses[1] != losses[2]
    assert torch.equal(gradients[0], gradients[1])


def test_a_set_larger_than_the_real_batch_is_drawn_from(setting: Setting) -> None:
    config = load_config("tiny", [KIND, "experts.batch_size=3"])
    matcher = matcher_of(altered(setting, config=config))
    pairs = start_pairs(setting)
    matcher.backward(pairs, generator(0))
    for part in (pairs.images, pairs.texts):
        assert part.grad is not None
        assert part.grad.flatten(1).any(1).sum() == 3


def test_only_images_and_texts_receive_a_gradient(setting: Setting) -> None:
    pairs, matcher = start_pairs(setting), matcher_of(setting)
    matcher.backward(pairs, generator(0))
    received = {name for name, p in pairs.named_parameters() if p.grad is not None}
    assert received == {"images", "texts"}
    pairs = start_pairs(setting).requires_grad_(False)
    assert float(matcher.backward(pairs, generator(0))) > 0


def test_matching_brings_the_means_together(setting: Setting) -> None:
    run = Distillation(start_pairs(setting), setting.config.distill, 0)
    matcher = matcher_of(setting)

    def distance() -> float:
        return sum(float(matcher.backward(run.synthetic, generator("same", i))) for i in range(5))

    before = distance()
    for _ in range(20):
        run.step(matcher)
    assert distance() < 0.8 * before


@pytest.mark.parametrize(
    "settings",
    [
        ["encoder.image_head=mlp", "encoder.scope=heads"],
        ["encoder.image_head=mlp", "encoder.scope=heads", "encoder.space=features"],
        ["dtype=bfloat16"],
    ],
)
def test_scopes_spaces_and_types(settings: list[str]) -> None:
    check_images_and_texts(setting_of(load_config("tiny", [KIND, *settings])))


def test_scope_all(tiny_bert: Path) -> None:
    settings = ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    check_images_and_texts(setting_of(load_config("tiny", [KIND, *settings])))


def check_images_and_texts(setting: Setting) -> None:
    pairs = start_pairs(setting)
    matcher_of(setting).backward(pairs, generator(0))
    for part in (pairs.images, pairs.texts):
        assert part.grad is not None
        assert part.grad.isfinite().all()
        assert part.grad.any()
