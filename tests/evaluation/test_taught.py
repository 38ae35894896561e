from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.evaluation import taught
from lors.evaluation.protocol import choose_epoch, outcome
from lors.evaluation.taught import taught_full_data, teachers_similarity
from lors.evaluation.tuning import Tuned, tune
from lors.experts import experts_of
from lors.losses import soft_nce
from lors.matching.teachers import Teachers
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.similarity import Fixed
from tests.conftest import FEATURES, random_pairs


@pytest.fixture(scope="module")
def heads() -> Setting:
    few = ["evaluate.seeds=2", "evaluate.tried_rates=[0.001, 0.1]"]
    return setting_of(load_config("tiny", [*FEATURES, *few]))


def test_the_similarity_is_of_the_mean_of_the_experts_cosines(heads: Setting) -> None:
    """Each expert's weights averaged over epochs 2 and 3 of 3; then softmaxes at τ = 0.05."""
    pairs, store, model = random_pairs(heads), experts_of(heads), heads.model(0)
    cosines = torch.zeros(len(pairs), len(pairs))
    for expert in range(2):
        heads.flat.load(store.snapshots(expert, [2, 3]).mean(0), model)
        cosines += model.embed_images(pairs.images) @ model.embed_texts(pairs.texts).T / 2
    likely = [(cosines / 0.05).exp() / (cosines / 0.05).exp().sum(d, keepdim=True) for d in (0, 1)]
    found = teachers_similarity(heads, pairs)
    torch.testing.assert_close(found.matrix(), (likely[0] + likely[1]) / 2)
    assert found.numbers() == len(pairs) ** 2


def test_a_given_s_is_tried_with_every_loss(heads: Setting) -> None:
    """It was learned for none. Where all rates but one are useless, that one is found, too."""
    pairs = random_pairs(heads)
    soft = Fixed(len(pairs), torch.full((len(pairs), len(pairs)), 0.1).fill_diagonal_(2))
    given = SyntheticPairs(pairs.images.detach(), pairs.texts.detach(), soft)
    changed = heads.config.evaluate.model_copy(update={"tried_losses": ("nce",)})
    other = setting_of(heads.config.model_copy(update={"evaluate": changed}))
    assert tune(other, given).loss == "ence"
    assert tune(other, pairs).loss == "nce"


def test_taught_networks_have_the_rate_that_is_best_on_val(heads: Setting) -> None:
    reached, chosen = taught_full_data(heads)
    teachers, real = Teachers(heads), heads.real
    runs = {
        rate: taught._taught(heads, teachers, (rate, rate), 0)
        for rate in heads.config.evaluate.tried_rates
    }
    vals = {rate: choose_epoch(*run, real["val"])[1] for rate, run in runs.items()}
    best = max(vals, key=lambda rate: vals[rate])
    assert chosen == Tuned("soft nce", (best, best), recall=vals[best])
    assert reached[0] == outcome(*runs[best], real["val"], real["test"])
    assert len(reached) == 2


def test_teaching_brings_a_network_nearer_to_the_teachers(heads: Setting) -> None:
    teachers = Teachers(heads)
    model, thetas = taught._taught(heads, teachers, (0.1, 0.1), 0)
    inputs, texts = heads.real_batch(torch.Generator().manual_seed(0), 40)
    targets = teachers.cosines(inputs, texts) / 0.05
    losses = []
    for theta in (heads.flat.flatten(heads.model(0, "taught", 0)), *thetas):
        heads.flat.load(theta, model)
        losses.append(soft_nce(model(inputs, texts), targets).item())
    assert losses == sorted(losses, reverse=True)
