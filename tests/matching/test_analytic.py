from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.config.matchers import AnalyticOptions
from lors.distillation.loop import Distillation
from lors.encoders import EncodedSplit
from lors.matching import matcher_of
from lors.matching.analytic import (
    AnalyticMatcher,
    Side,
    covariances,
    head_distance,
    real_covariances,
    real_sides,
    relative_distance,
)
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.similarity import Fixed
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from tests.conftest import altered

from .differences import assert_gradient_is_slope

HEADS = ["matching.kind=analytic", "encoder.scope=heads"]
FEATURES = [*HEADS, "encoder.space=features", "encoder.image_head=linear"]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", ["dtype=float64", *FEATURES]))


TARGETS = [AnalyticOptions(subsets=1), AnalyticOptions(target="heads")]


def fitted(x: Tensor, y: Tensor, ridge: float) -> Tensor:
    """Ridge regression as least squares: √γ I below the data, targets of zero for it."""
    scaled = torch.cat([x / len(x) ** 0.5, ridge**0.5 * torch.eye(x.shape[1]).to(x)])
    targets = torch.cat([y / len(y) ** 0.5, torch.zeros(x.shape[1], y.shape[1]).to(y)])
    return torch.linalg.lstsq(scaled, targets).solution


@pytest.mark.parametrize("pairs", [3, 12])  # fewer and more than features
def test_the_distance_is_that_of_the_fitted_heads(pairs: int) -> None:
    draw = generator(0)
    x, y, head = (
        torch.randn(shape, generator=draw, dtype=torch.double)
        for shape in ((pairs, 6), (pairs, 4), (6, 4))
    )
    expected = (fitted(x, y, 0.3) - head).square().sum() / head.square().sum()
    torch.testing.assert_close(head_distance(Side(head, 0.3), x, y), expected)


def centred(setting: Setting) -> tuple[Tensor, Tensor]:
    real, model = setting.real["train"], setting.flat.model
    x = real.inputs(np.arange(len(real)), model)
    texts, owner = real.captions(np.arange(len(real.texts)), model), torch.from_numpy(real.owner)
    y = torch.stack([texts[owner == image].mean(0) for image in range(len(real))])
    return x - x.mean(0), y - y.mean(0)


def test_the_heads_of_the_real_pairs_are_ridge_regressions(
    double: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = centred(double)
    for chunk in (64, 2048):
        monkeypatch.setattr("lors.matching.analytic.CHUNK", chunk)
        image, text = real_sides(double.real["train"], double.flat.model, ridge=0.5)
        for side, (a, b) in ((image, (x, y)), (text, (y, x))):
            assert side.ridge == pytest.approx(0.5 * a.square().mean().item(), rel=1e-6)
            torch.testing.assert_close(side.head, fitted(a, b, side.ridge), rtol=1e-4, atol=1e-6)


def test_real_pairs_are_at_no_distance_from_themselves_and_nothing_is_at_two(
    double: Setting,
) -> None:
    real, model, index = double.real["train"], double.flat.model, np.arange(7)
    first = np.searchsorted(real.owner, index)
    seven = EncodedSplit(real.images[:7], real.texts[first], index)
    setting = altered(double, real={"train": seven})
    for options in TARGETS:
        matcher = AnalyticMatcher(setting, options)
        pairs = SyntheticPairs(seven.inputs(index, model), seven.captions(index, model)).double()
        assert float(matcher.backward(pairs, generator(0))) == pytest.approx(0, abs=1e-9)
        pairs.texts.data.zero_()
        assert float(matcher.backward(pairs, generator(0))) == pytest.approx(2)


@pytest.mark.parametrize("options", TARGETS)
def test_gradient_equals_central_differences(double: Setting, options: AnalyticOptions) -> None:
    pairs, matcher = start_pairs(double), AnalyticMatcher(double, options)
    right = pairs.get_parameter("similarity.right")
    right.data += 0.1 * torch.randn(right.shape, generator=generator("right")).to(right)
    names = ("images", "texts", "similarity.omega", "similarity.left", "similarity.right")
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(0))), pairs, names
    )
    assert pairs.rates.grad is None


@pytest.mark.parametrize("options", TARGETS)
def test_a_similarity_exchanges_what_images_are_mapped_to(
    double: Setting, options: AnalyticOptions
) -> None:
    """Pairs whose texts are exchanged, with an S that exchanges them back, are the same."""
    pairs, matcher = start_pairs(double), AnalyticMatcher(double, options)
    plain = SyntheticPairs(pairs.images.data, pairs.texts.data)
    order = torch.randperm(len(plain), generator=generator(0))
    back = torch.eye(len(plain))[:, order.argsort()].T
    exchanged = SyntheticPairs(plain.images.data, plain.texts.data[order], Fixed(len(plain), back))
    found = [float(matcher.backward(p.double(), generator(0))) for p in (plain, exchanged)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_equal_covariances_give_equal_heads() -> None:
    x, y = (torch.randn(20, n, generator=generator(n), dtype=torch.double) for n in (4, 3))
    found = covariances(x, y)
    head = torch.linalg.lstsq(x - x.mean(0), y - y.mean(0)).solution
    torch.testing.assert_close(torch.linalg.solve(found.image, found.common), head)
    turned = torch.linalg.qr(torch.randn(20, 20, generator=generator(0), dtype=torch.double))[0]
    mean = torch.ones(20, 1, dtype=torch.double) / 20**0.5
    turned, _ = torch.linalg.qr(torch.cat([mean, turned], 1)[:, :20])  # keeps the mean apart
    others = covariances(*(turned[:, 1:] @ turned[:, 1:].T @ (t - t.mean(0)) for t in (x, y)))
    assert relative_distance(found, others).item() == pytest.approx(0, abs=1e-12)
    assert relative_distance(found, covariances(0 * x, 0 * y)).item() == pytest.approx(3)


def test_every_iteration_takes_the_next_caption_of_every_image(double: Setting) -> None:
    real, model = double.real["train"], double.flat.model
    found = real_covariances(real, model, 3)
    x = real.inputs(np.arange(len(real)), model).double()
    for number, each in enumerate(found):
        captions = np.searchsorted(real.owner, np.arange(len(real))) + number
        expected = covariances(x, real.captions(captions, model).double())
        torch.testing.assert_close(each.common, expected.common)
    options = AnalyticOptions(target="covariances", subsets=3)
    matcher, pairs = AnalyticMatcher(double, options), start_pairs(double)
    losses = [float(matcher.backward(pairs, generator(0))) for _ in range(6)]
    assert losses[:3] == losses[3:]
    assert len(set(losses)) == 3


def test_matching_brings_the_heads_together() -> None:
    rates = ["distill.learning_rates.images=3", "distill.learning_rates.texts=3"]
    heads = ["matching.target=heads", "similarity.kind=identity"]
    setting = setting_of(load_config("tiny", [*FEATURES, *rates, *heads]))
    run, matcher = (
        Distillation(start_pairs(setting), setting.config.distill, 0),
        matcher_of(setting),
    )
    losses = [run.step(matcher) for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]


def test_heads_on_trunks_that_train_have_no_closed_form() -> None:
    with pytest.raises(InputError, match=r"encoder\.scope=heads, not image"):
        load_config("tiny", ["matching.kind=analytic"])


def test_it_works_with_few_digits() -> None:
    setting = setting_of(load_config("tiny", [*HEADS, "dtype=bfloat16", "encoder.image_head=mlp"]))
    assert float(matcher_of(setting).backward(start_pairs(setting), generator(0))) > 0
