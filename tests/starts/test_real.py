from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.selection import SELECTIONS, select
from lors.sets.synthetic import SyntheticPairs
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError


def made(*settings: str) -> SyntheticPairs:
    return start_pairs(setting_of(load_config("tiny", settings)))


def test_real_pairs_do_not_depend_on_how_many_the_similarity_leaves() -> None:
    few, many = made(), made("similarity.kind=identity")
    assert len(few) < len(many) == 8
    assert torch.equal(few.images, many.images[: len(few)])


def test_photos_that_pairs_start_as_may_be_augmented() -> None:
    plain, augmented = made(), made("distill.augment_start=true")
    assert torch.equal(plain.texts, augmented.texts)
    assert not torch.equal(plain.images, augmented.images)
    assert torch.equal(augmented.images, made("distill.augment_start=true").images)
    with pytest.raises(InputError, match=r"set distill\.augment_start=false"):
        load_config("features", ["distill.augment_start=true"])


def test_replicas_come_in_twos() -> None:
    pairs = made("distill.init=replicas", "similarity.kind=identity")
    assert torch.equal(pairs.images[::2], pairs.images[1::2])
    assert len(pairs.images.flatten(1).unique(dim=0)) == 4


def test_noise_is_standard_normal_and_the_same_for_a_seed() -> None:
    pairs = made("distill.init=noise")
    assert pairs.images.mean().item() == pytest.approx(0, abs=0.05)
    assert pairs.images.std().item() == pytest.approx(1, abs=0.05)
    assert torch.equal(pairs.images, made("distill.init=noise").images)


def test_any_selection_can_be_a_start() -> None:
    for kind in SELECTIONS:
        config = load_config("tiny", [f"distill.init={kind}", "similarity.kind=identity"])
        setting = setting_of(config)
        (chosen, _), captions = select(setting, kind, 8, "start")
        found, expected = start_pairs(setting), setting.plain_pairs(chosen, captions)
        assert torch.equal(found.images, expected.images), kind
        assert torch.equal(found.texts, expected.texts), kind


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="did you mean 'herding'"):
        load_config("tiny", ["distill.init=hearding"])
    settings = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    settings += ["similarity.kind=fixed", "distill.init=cross-covariance"]
    with pytest.raises(InputError, match=r"distill\.init=real"):
        made(*settings)
