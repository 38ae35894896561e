from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.data import Decoded, Split
from lors.encoders import EncodedSplit
from lors.setting import Setting, resolve, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from tests.conftest import altered


def test_mistakes_show_before_anything_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    settings = ["encoder.text=transformers:/absent"]
    with pytest.raises(InputError, match=r"data\.root"):  # not the text trunk, a long download
        setting_of(load_config("tiny", [*settings, "data.source=table", "data.root=/none"]))
    with pytest.raises(InputError, match="/absent"):
        setting_of(load_config("tiny", settings))
    assert not (tmp_path / "home").exists()  # no image was decoded


def test_a_real_batch_is_different_images_each_with_a_caption_of_its_own(setting: Setting) -> None:
    owner = np.repeat(np.arange(60), 2)
    features = np.repeat(np.arange(60, dtype=np.float32)[:, None], 4, 1)
    captions = np.stack([owner, np.arange(120), owner, owner], 1).astype(np.int32)
    many = altered(setting, real={"train": EncodedSplit(features, captions, owner)})
    inputs, texts = many.real_batch(generator(0), None)
    assert len(inputs) == setting.config.experts.batch_size == 50
    assert len(inputs[:, 0].unique()) == 50
    assert torch.equal(inputs[:, 0].long(), texts[:, 0])
    assert 0 < (texts[:, 1] % 2).sum() < 50  # first and second captions
    assert len(many.real_batch(generator(0), 12)[0]) == 12
    few = altered(many, real={"train": EncodedSplit(features[:3], captions[:6], owner[:6])})
    assert sorted(few.real_batch(generator(0), None)[0][:, 0].tolist()) == [0, 1, 2]


def test_a_real_batch_is_augmented_where_real_images_are() -> None:
    plain = setting_of(load_config("tiny"))
    augmented = setting_of(load_config("tiny", ["data.augment=true"]))
    images, texts = plain.real_batch(generator(0), None)
    once, twice = (augmented.real_batch(generator(0), None) for _ in range(2))
    assert torch.equal(once[0], twice[0])
    assert torch.equal(once[1], texts)
    assert not torch.equal(once[0], images)


def given(pixels: bool, texts: int = 12) -> Decoded:
    rng = np.random.default_rng(0)
    shape = (50, 3, 16, 16) if pixels else (50, 20)
    images = rng.integers(0, 256, shape, np.uint8) if pixels else rng.normal(size=shape)
    words = rng.normal(size=(50, texts)).astype(np.float32)
    images = images if pixels else images.astype(np.float32)
    split = Split(images, [], np.arange(50), "mine", words)
    return Decoded("mine", dict.fromkeys(("train", "val", "test"), split))


def test_a_setting_works_on_pairs_that_are_given() -> None:
    config = resolve(load_config("tiny", ["data.root=/absent"]))  # which nobody reads
    pixels = Setting(config, pairs=given(pixels=True))
    assert pixels.text_trunk.dim == 12
    assert pixels.flat.model.text.in_features == 12
    assert start_pairs(pixels).images.shape == (7, 3, 16, 16)
    heads = ["encoder.scope=heads", "encoder.image_head=linear", "encoder.space=features"]
    features = Setting(resolve(load_config("tiny", heads)), pairs=given(pixels=False))
    assert features.image_trunk == "given|20"
    assert start_pairs(features).images.shape[1:] == (20,)
    with pytest.raises(InputError, match="no pixels"):
        Setting(config, pairs=given(pixels=False))


def test_captions_are_cleaned_if_asked_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lors.setting.setting.embed_once", lambda trunk, words, _: list(words))
    split = Split(np.zeros((1, 2)), ("A (red) dog!", " ".join("ab" * 40)), np.zeros(2), "")
    given = altered(setting, pairs=Decoded("", {"val": split}))
    assert given.texts("val") == list(split.captions)
    data = setting.config.data.model_copy(update={"clean_captions": True})
    given.config = setting.config.model_copy(update={"data": data})
    assert given.texts("val") == ["a red dog", " ".join("ab" * 15)]
