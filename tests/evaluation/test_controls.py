from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.config import SimilarityConfig
from lors.evaluation.controls import CONTROLS, controlled, with_identity, with_real_captions
from lors.evaluation.evaluate import evaluate, evaluate_set
from lors.evaluation.protocol import choose_epoch, snapshots
from lors.evaluation.tuning import pairs_for, with_rates
from lors.losses import LOSSES
from lors.runs.folders import SET
from lors.sets.distilled import DistilledSet
from lors.setting import Setting
from lors.system.errors import InputError
from tests.conftest import random_pairs


@pytest.fixture(scope="module")
def learned(tiny_run: Path) -> DistilledSet:
    return DistilledSet.load(tiny_run / SET)


def test_the_identity_replaces_s_and_nothing_else(setting: Setting, learned: DistilledSet) -> None:
    assert not torch.equal(learned.similarity, torch.eye(len(learned)))
    plain = with_identity(setting, learned)
    assert torch.equal(plain.similarity, torch.eye(len(learned)))
    assert torch.equal(plain.images, learned.images)
    assert torch.equal(plain.texts, learned.texts)
    assert plain.rates == learned.rates
    assert plain.storage() == len(plain) < learned.storage()


def test_real_captions_are_the_nearest_of_all(setting: Setting, learned: DistilledSet) -> None:
    """By brute force, in the standardised units of the set; images and S stay."""
    real = with_real_captions(setting, learned)
    model, train = setting.flat.model, setting.real["train"]
    every = train.captions(np.arange(len(train.texts)), model).cpu().numpy()
    texts = (made.pairs.texts.cpu().numpy() for made in (learned, real))
    for text, found in zip(*texts, strict=True):
        cosines = every @ text / np.linalg.norm(every, axis=1)
        same = (every == found).all(1)
        assert same.any()
        assert cosines[same].max() == pytest.approx(cosines.max(), abs=1e-6)
    assert torch.equal(real.images, learned.images)
    assert torch.equal(real.similarity, learned.similarity)


def test_real_pairs_have_nothing_to_lose(setting: Setting) -> None:
    selected = setting.distilled(random_pairs(setting), "nce", SimilarityConfig(kind="identity"))
    for control in CONTROLS:
        same, how = controlled(setting, selected, control)
        assert same is selected
        assert not how


def test_own_loss_and_rates_compete_with_tuned_ones_on_val(
    setting: Setting, learned: DistilledSet
) -> None:
    protocol, plain = setting.config.evaluate, with_identity(setting, learned)
    ways = [(loss, (rate, rate)) for loss in protocol.tried_losses for rate in protocol.tried_rates]
    ways.append(("wbce", learned.rates))
    vals = []
    for loss, rates in ways:
        keys = (setting.config.seed, "tuning")
        model, pairs = setting.model(*keys), with_rates(pairs_for(setting, plain), rates)
        thetas = snapshots(pairs, model, LOSSES[loss], protocol, *keys)
        vals.append(choose_epoch(model, thetas, setting.real["val"])[1])
    loss, rates = ways[int(np.argmax(vals))]
    found, how = controlled(setting, learned, "identity")
    assert found.config.loss == loss
    assert found.rates == pytest.approx(rates)
    assert how == (
        f"{loss}, rate {rates[0]:g}" if rates[0] == rates[1] else f"{loss}, the set's rates"
    )


def test_an_evaluation_under_control_is_that_of_the_changed_set(
    setting: Setting, learned: DistilledSet, tiny_run: Path, tmp_path: Path
) -> None:
    found, how = controlled(setting, learned, "identity")
    found.save(tmp_path / "plain.safetensors")
    row = evaluate(tiny_run, control="identity", progress=False, evaluate={"seeds": 1})
    assert (row.note, row.storage) == (how, len(learned))
    plain = evaluate_set(tmp_path / "plain.safetensors", ["evaluate.seeds=1"])
    assert row.recall == plain.recall


def test_a_control_without_the_training_data_is_refused(learned: DistilledSet) -> None:
    draw = np.random.default_rng(0)
    test = draw.normal(size=(9, 8)), draw.normal(size=(9, 8))
    with pytest.raises(InputError, match="leave out test and val"):
        evaluate(learned, test=test, control="captions", progress=False)
    with pytest.raises(InputError, match="unknown control 'identiy'; did you mean"):
        evaluate(learned, control="identiy", progress=False)  # type: ignore[arg-type]
