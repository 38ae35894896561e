from __future__ import annotations

from typing import Any

import pytest
import torch

from lors.config import load_config
from lors.config.matchers import HindsightOptions
from lors.distillation.loop import Distillation
from lors.evaluation.tuning import val_recall
from lors.experts import experts_of
from lors.losses import soft_nce
from lors.matching import matcher_of
from lors.matching.hindsight import HindsightMatcher
from lors.matching.teachers import Teachers
from lors.matching.unroll import train_differentiably
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator

from .differences import assert_gradient_is_slope

HINDSIGHT = [
    *("matching.kind=hindsight", "matching.real_batch_size=20", "matching.noise=0"),
    "evaluate.batch_size=5",
]
FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=mlp"]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", ["dtype=float64", *FEATURES, *HINDSIGHT]))


@pytest.mark.parametrize("settings", [[], ["matching.noise=0.3"]])
def test_the_gradient_is_the_slope_of_the_objective(settings: list[str]) -> None:
    setting = setting_of(load_config("tiny", ["dtype=float64", *FEATURES, *HINDSIGHT, *settings]))
    matcher = matcher_of(setting)
    names = ["images", "texts", "rates", "similarity.omega", "similarity.right"]
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(7))), start_pairs(setting), names
    )


def test_training_is_no_longer_and_no_faster_than_the_protocol(
    double: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 epochs of two batches, and from the fifth epoch on a tenth of the rate."""
    rates: list[float] = []

    def watched(*arguments: Any) -> Any:
        rates.extend(rate[0].item() for rate in arguments[4])
        return train_differentiably(*arguments)

    monkeypatch.setattr("lors.matching.hindsight.train_differentiably", watched)
    matcher = HindsightMatcher(double, HindsightOptions(steps=50, real_batch_size=20))
    matcher.backward(start_pairs(double), generator(7))
    assert rates == pytest.approx([0.1] * 8 + [0.01] * 8)


def test_fixed_parts_get_no_gradient(double: Setting) -> None:
    pairs = start_pairs(double)
    for fixed in (pairs.images, pairs.rates):
        fixed.requires_grad_(False)
    matcher_of(double).backward(pairs, generator(7))
    assert pairs.images.grad is None
    assert pairs.rates.grad is None
    assert pairs.texts.grad is not None
    assert pairs.texts.grad.any()


def test_the_objective_is_least_where_the_network_is_the_teachers() -> None:
    targets = 3 * torch.randn(6, 6, generator=generator(0))
    least = soft_nce(targets, targets)
    for seed in range(1, 5):
        assert (
            soft_nce(targets + 0.1 * torch.randn(6, 6, generator=generator(seed)), targets) > least
        )
    sure = torch.full((4, 4), -1e4).fill_diagonal_(0)  # teachers that know the pairs: InfoNCE
    logits = torch.randn(4, 4, generator=generator(9))
    nce = -(logits.log_softmax(1) + logits.log_softmax(0)).diagonal().mean()
    torch.testing.assert_close(soft_nce(logits, sure), nce)


def test_teachers_agree_on_the_mean_of_their_cosines(double: Setting) -> None:
    teachers, (inputs, texts) = Teachers(double), double.real_batch(generator(0), None)
    store, model, expected = experts_of(double), double.model("any"), []
    for expert in range(2):
        late = store.snapshots(expert, [2, 3]).double()  # of 3 epochs
        double.flat.load(late.mean(0), model)
        expected.append((model(inputs, texts) * model.temperature).detach())
    assert (expected[0] - expected[1]).abs().max() > 0.01
    torch.testing.assert_close(teachers.cosines(inputs, texts), sum(expected) / 2)


def learned(setting: Setting, iterations: int) -> tuple[SyntheticPairs, list[float]]:
    config = setting.config.distill.model_copy(update={"iterations": iterations})
    run = Distillation(start_pairs(setting), config, seed=0)
    matcher = matcher_of(setting)
    losses = [run.step(matcher) for _ in range(iterations)]
    return run.synthetic, losses


ADAM = [
    "distill.optimizer=adam",
    "distill.momentum=0.9",
    "distill.learning_rates.images=0.05",
    "distill.learning_rates.texts=0.05",
    "distill.learning_rates.similarity=0.05",
    "distill.learning_rates.rates=0.003",
    "matching.steps=8",
    "matching.real_batch_size=100",
]


def test_networks_trained_on_a_learned_set_retrieve_better() -> None:
    setting = setting_of(load_config("tiny", [*FEATURES, *HINDSIGHT, *ADAM]))
    pairs, losses = learned(setting, 25)
    assert sum(losses[-5:]) < sum(losses[:5])
    assert val_recall(setting, pairs) > val_recall(setting, start_pairs(setting))


def test_a_trunk_may_train_along() -> None:
    setting = setting_of(load_config("tiny", [*HINDSIGHT, *ADAM]))
    _, losses = learned(setting, 25)
    assert sum(losses[-5:]) < sum(losses[:5])
