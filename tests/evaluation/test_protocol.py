from __future__ import annotations

import copy
from itertools import islice

import pytest
import torch
from torch import nn

from lors.config import EvaluateConfig
from lors.encoders import DualEncoder, FlatModel, build_dual_encoder
from lors.evaluation.protocol import Outcome, measure, outcome, snapshots, summarise, train_on
from lors.evaluation.recall import Recall
from lors.experts import experts_of
from lors.losses import nce, wbce_published
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Fixed
from tests.conftest import random_pairs

PROTOCOL = EvaluateConfig(seeds=1, epochs=4, checks=4, batch_size=3)


def test_the_protocol_is_sgd_with_momentum_decay_and_a_step_at_half_time(setting: Setting) -> None:
    pairs = random_pairs(setting, 0.05)
    pairs.rates.data = pairs.rates.new_tensor([0.05, 0.02])
    protocol = PROTOCOL.model_copy(update={"batch_size": 100})
    model, flat = setting.model(0), setting.flat
    theta = flat.flatten(model).requires_grad_()
    velocity = torch.zeros_like(theta)
    rates = zip(flat.sides, (0.05, 0.02), strict=True)
    sides = torch.cat([torch.full((n,), r) for n, r in rates]).to(theta)
    for epoch in range(4):
        loss = nce(flat(theta, pairs.images.detach(), pairs.texts.detach()))
        (g,) = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            velocity = 0.9 * velocity + g + 5e-4 * theta
            theta = (theta - sides * (0.1 if epoch >= 2 else 1) * velocity).requires_grad_()
    train_on(pairs, model, nce, protocol, 0)
    torch.testing.assert_close(flat.flatten(model), theta.detach(), rtol=1e-3, atol=1e-4)


def test_the_published_protocol_is_that_of_the_published_code() -> None:
    """Written out with torch's own: 101 epochs, the rates fall after the 51st."""
    rng = torch.Generator().manual_seed(0)
    images, texts = (torch.randn(6, d, generator=rng, dtype=torch.double) for d in (5, 4))
    model = DualEncoder(nn.Linear(5, 3), nn.Linear(4, 3)).double()
    other = copy.deepcopy(model)
    pairs = SyntheticPairs(images, texts, Fixed(6, torch.rand(6, 6, generator=rng)), (0.1, 0.2))
    protocol = EvaluateConfig(reading="published", epochs=101, checks=11)
    groups = [
        {"params": side.parameters(), "lr": rate}
        for side, rate in ((other.image, 0.1), (other.text, 0.2))
    ]
    optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [51], gamma=0.1)
    measured = []
    for epoch in range(101):
        optimizer.zero_grad()
        wbce_published(other(images, texts), pairs.similarity.matrix().double()).backward()
        optimizer.step()
        schedule.step()
        if epoch % 10 == 0:
            measured.append(FlatModel(other).flatten(other))
    for ours, theirs in zip(
        snapshots(pairs, model, wbce_published, protocol, 0), measured, strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_published_batches_are_each_drawn_from_the_whole_set() -> None:
    pairs = SyntheticPairs(torch.zeros(9, 2), torch.zeros(9, 2))
    drawn = list(islice(pairs.drawn(4, torch.Generator().manual_seed(0)), 3))
    assert [len(set(index.tolist())) for index in drawn] == [4, 4, 4]
    assert len(torch.cat(drawn).unique()) < 9  # an epoch of 3 need not show every pair
    whole = list(islice(pairs.passes(4, torch.Generator(), drop_last=True), 4))
    assert [len(index) for index in whole] == [4, 4, 4, 4]
    assert len(torch.cat(whole[:2]).unique()) == 8


def test_dropout_is_at_work_in_evaluation_and_not_when_measured(setting: Setting) -> None:
    pairs, real = random_pairs(setting, 0.05), setting.real["test"]
    encoder = setting.config.encoder
    ends, models = [], []
    for head in ("mlp", "mlp-published", "mlp-published"):
        config = encoder.model_copy(update={"text_head": head})
        model = build_dual_encoder(config, setting.frozen, 0).to(setting.device)
        ends.append(snapshots(pairs, model, nce, PROTOCOL, 0)[-1])
        models.append(model)
    assert torch.equal(ends[1], ends[2])
    assert not torch.equal(ends[0], ends[1])
    assert measure(models[1], real) == measure(models[2], real)


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
