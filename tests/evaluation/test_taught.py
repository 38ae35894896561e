from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.evaluation import taught
from lors.evaluation.protocol import outcome
from lors.evaluation.taught import taught_full_data, teachers_similarity
from lors.evaluation.tuning import tune
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
    """Each expert's weights averaged over epochs 2 and 3 of 3; then softmaxes at τ = 0.1."""
    pairs, store, model = random_pairs(heads), experts_of(heads), heads.model(0)
    cosines = torch.zeros(len(pairs), len(pairs)).to(pairs.images)
    for expert in range(2):
        heads.flat.load(store.snapshots(expert, [2, 3]).mean(0), model)
        cosines += model.embed_images(pairs.images) @ model.embed_texts(pairs.texts).T / 2
    likely = [(cosines / 0.1).exp() / (cosines / 0.1).exp().sum(d, keepdim=True) for d in (0, 1)]
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


def test_taught_networks_are_read_at_the_epoch_that_val_chooses(heads: Setting) -> None:
    """Three times as many epochs as experts have, 3, and as many networks as are evaluated."""
    first, second = taught_full_data(heads)
    model, thetas = taught._taught(heads, Teachers(heads), 0)
    assert len(thetas) == 9
    assert first == outcome(model, thetas, heads.real["val"], heads.real["test"])
    assert first != second


def test_teaching_brings_a_network_nearer_to_the_teachers(heads: Setting) -> None:
    teachers = Teachers(heads)
    model, thetas = taught._taught(heads, teachers, 0)
    inputs, texts = heads.real_batch(torch.Generator().manual_seed(0), 40)
    targets = teachers.cosines(inputs, texts) / 0.05
    losses = []
    for theta in (heads.flat.flatten(heads.model(0, "taught", 0)), thetas[-1]):
        heads.flat.load(theta, model)
        losses.append(soft_nce(model(inputs, texts), targets).item())
    assert losses[1] < losses[0]
