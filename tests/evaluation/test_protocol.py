from __future__ import annotations

import pytest
import torch

from lors.config import EvaluateConfig
from lors.evaluation.protocol import Outcome, measure, outcome, snapshots, summarise, train_on
from lors.evaluation.recall import Recall
from lors.experts import experts_of
from lors.losses import nce
from lors.setting import Setting
from tests.conftest import random_pairs

PROTOCOL = EvaluateConfig(seeds=1, epochs=4, checks=4, batch_size=3)


def test_the_protocol_is_sgd_with_momentum_decay_and_a_step_at_half_time(setting: Setting) -> None:
    pairs = random_pairs(setting, 0.05)
    pairs.rates.data = torch.tensor([0.05, 0.02])
    protocol = PROTOCOL.model_copy(update={"batch_size": 100})
    model, flat = setting.model(0), setting.flat
    theta = flat.flatten(model).requires_grad_()
    velocity = torch.zeros_like(theta)
    sides = torch.cat([torch.full((n,), r) for n, r in zip(flat.sides, (0.05, 0.02), strict=True)])
    for epoch in range(4):
        loss = nce(flat(theta, pairs.images.detach(), pairs.texts.detach()))
        (g,) = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            velocity = 0.9 * velocity + g + 5e-4 * theta
            theta = (theta - sides * (0.1 if epoch >= 2 else 1) * velocity).requires_grad_()
    train_on(pairs, model, nce, protocol, 0)
    torch.testing.assert_close(flat.flatten(model), theta.detach(), rtol=1e-3, atol=1e-4)


def test_evaluation_is_reproducible_and_seeds_differ(setting: Setting) -> None:
    def run(seed: int) -> Outcome:
        pairs, real, model = random_pairs(setting, 0.05), setting.real, setting.model(seed)
        thetas = snapshots(pairs, model, nce, PROTOCOL, seed)
        assert torch.equal(thetas[-1], setting.flat.flatten(model))
        return outcome(model, thetas, real["val"], real["test"])

    assert run(0) == run(0) != run(1)


def test_the_epoch_is_chosen_on_val_and_legacy_on_test(setting: Setting) -> None:
    store = experts_of(setting)
    thetas = list(store.snapshots(0, range(setting.config.experts.epochs + 1)))
    model, real = setting.model(0), setting.real
    vals, tests = [], []
    for theta in thetas:
        setting.flat.load(theta, model)
        vals.append(measure(model, real["val"]).mean)
        tests.append(measure(model, real["test"]))
    found = outcome(model, thetas, real["val"], real["test"], legacy=True)
    assert found.chosen == tests[vals.index(max(vals))]
    assert found.val == max(vals)
    assert found.last == tests[-1]
    assert found.legacy is not None
    assert found.legacy.mean == max(test.mean for test in tests)


def test_summary_is_mean_and_deviation() -> None:
    outcomes = [Outcome(r, r, 0.0) for r in (Recall(*[10.0] * 6), Recall(*[14.0] * 6))]
    summary = summarise(outcomes)
    assert set(summary.content()) == {"last", "chosen"}
    assert summary.legacy is None
    assert summary.chosen.ir5.mean == summary.chosen.mean.mean == 12.0
    assert summary.chosen.ir5.std == pytest.approx(8**0.5)
