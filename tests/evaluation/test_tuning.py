from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.encoders import DualEncoder
from lors.evaluation.protocol import choose_epoch, snapshots
from lors.evaluation.tuning import candidates, tune, val_recall, with_rates
from lors.losses import LOSSES
from lors.runs.folders import SET
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.setting.resolve import resolve
from lors.system.errors import InputError
from tests.conftest import random_pairs


def test_a_learned_similarity_keeps_its_loss_when_rates_are_tuned(tmp_path: Path) -> None:
    overrides = ["matching.kind=distribution", "loss=bce", "distill.evaluate_every=0"]
    run(load_config("tiny", overrides), tmp_path, references=False)
    assert DistilledSet.load(tmp_path / SET).config.loss == "bce"


@pytest.mark.parametrize("kind", ["gradient", "distribution"])
def test_a_matcher_that_learns_no_rates_gets_them_tuned(kind: str, tmp_path: Path) -> None:
    low = [f"distill.learning_rates.{part}=0.001" for part in ("images", "texts", "similarity")]
    overrides = [f"matching.kind={kind}", "loss=nce", "similarity.kind=identity", *low]
    tried = ["evaluate.tried_losses=[bce, ence]", "evaluate.tried_rates=[0.02, 0.2]"]
    results = run(load_config("tiny", [*overrides, *tried]), tmp_path, references=False)
    kept = DistilledSet.load(tmp_path / SET)
    assert kept.config.loss in ("bce", "ence")
    assert kept.rates[0] == kept.rates[1]
    assert any(kept.rates[0] == pytest.approx(rate) for rate in (0.02, 0.2))
    note = results.distilled.note
    assert note == f"{kept.config.loss}, rate {kept.rates[0]:g}"


def test_rates_of_the_experts_are_tried_where_their_sides_differ() -> None:
    same = candidates(load_config("tiny"))
    rates = load_config("tiny").evaluate.tried_rates
    assert same == [(rate, rate) for rate in rates]
    both = candidates(load_config("tiny", ["experts.rate=0.01", "experts.text_rate=1.0"]))
    assert both[: len(rates)] == same
    assert (0.01, 1.0) in both
    assert all(text == pytest.approx(100 * image) for image, text in both[len(rates) :])


def test_an_unknown_loss_to_try_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'nce'"):
        resolve(load_config("tiny", ["evaluate.tried_losses=[nec]"]))


def test_photos_go_through_a_frozen_trunk_once_for_all_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overrides = ["encoder.scope=heads", "encoder.image_head=linear"]
    setting = setting_of(load_config("tiny", overrides))
    pairs = random_pairs(setting)
    encoded, freeze = [], DualEncoder.freeze

    def counted(model: DualEncoder, images: Tensor) -> Tensor:
        encoded.append(len(images))
        return freeze(model, images)

    monkeypatch.setattr(DualEncoder, "freeze", counted)
    tune(setting, pairs)
    assert encoded == [len(pairs)]


def test_tuning_finds_the_best_of_all_choices_and_changes_nothing() -> None:
    tried = ["evaluate.tried_losses=[nce, bce]", "evaluate.tried_rates=[0.0001, 0.3]"]
    setting = setting_of(load_config("tiny", tried))
    pairs = random_pairs(setting, rate=0.05)
    before = {name: value.clone() for name, value in pairs.state_dict().items()}
    found = tune(setting, pairs)
    assert all(torch.equal(value, before[name]) for name, value in pairs.state_dict().items())

    def reached(loss: str, rate: float) -> float:
        keys = (setting.config.seed, "tuning")
        model = setting.model(*keys)
        own = with_rates(pairs, (rate, rate))
        thetas = snapshots(own, model, LOSSES[loss], setting.config.evaluate, *keys)
        return choose_epoch(model, thetas, setting.real["val"])[1]

    recalls = {(loss, rate): reached(loss, rate) for loss in ("nce", "bce") for rate in (1e-4, 0.3)}
    assert found.recall == max(recalls.values()) == recalls[found.loss, found.rates[0]]
    assert len(set(recalls.values())) > 1


def test_pairs_with_other_rates_share_the_rest(setting: Setting) -> None:
    pairs = random_pairs(setting)
    other = with_rates(pairs, (0.3, 0.7))
    assert torch.equal(other.rates.cpu(), torch.tensor([0.3, 0.7]))
    assert torch.equal(pairs.rates.cpu(), torch.tensor([0.1, 0.1]))
    assert other.similarity is pairs.similarity
    assert other.images.data_ptr() == pairs.images.data_ptr()
    assert other.texts.data_ptr() == pairs.texts.data_ptr()


def test_recall_during_a_run_is_of_the_last_epoch_or_of_the_one_to_be_chosen() -> None:
    config = load_config("tiny", ["evaluate.checks=8", "distill.inner_rate=0.5"])
    setting = setting_of(config)
    pairs = with_rates(random_pairs(setting), (3.0, 3.0))
    keys = (config.seed, "validation network")
    thetas = snapshots(pairs, setting.model(*keys), setting.loss, config.evaluate, *keys)
    model, val = setting.model("any"), setting.real["val"]
    last = choose_epoch(model, thetas[-1:], val)[1]
    best = choose_epoch(model, thetas, val)[1]
    assert len(thetas) == 8
    assert best > last
    assert val_recall(setting, pairs) == last
    chosen = config.distill.model_copy(update={"evaluate_epoch": "chosen"})
    setting.config = setting.config.model_copy(update={"distill": chosen})
    assert val_recall(setting, pairs) == best
