from __future__ import annotations

import dataclasses

import numpy as np
import torch

from lors.config import load_config
from lors.encoders import EncodedSplit
from lors.setting import Setting, setting_of
from lors.system.seeding import generator


def test_a_real_batch_is_different_images_each_with_a_caption_of_its_own(bench: Setting) -> None:
    owner = np.repeat(np.arange(60), 2)
    features = np.repeat(np.arange(60, dtype=np.float32)[:, None], 4, 1)
    captions = np.stack([owner, np.arange(120), owner, owner], 1).astype(np.int32)
    setting = dataclasses.replace(bench.setting(), real=EncodedSplit(features, captions, owner))
    inputs, texts = setting.real_batch(generator(0))
    assert len(inputs) == bench.config.experts.batch_size == 50
    assert len(inputs[:, 0].unique()) == 50
    assert torch.equal(inputs[:, 0].long(), texts[:, 0])
    assert 0 < (texts[:, 1] % 2).sum() < 50  # first and second captions
    few = dataclasses.replace(setting, real=EncodedSplit(features[:3], captions[:6], owner[:6]))
    assert sorted(few.real_batch(generator(0))[0][:, 0].tolist()) == [0, 1, 2]


def test_a_real_batch_is_augmented_where_real_images_are() -> None:
    plain = setting_of(load_config("tiny")).setting()
    augmented = setting_of(load_config("tiny", ["data.augment=true"])).setting()
    images, texts = plain.real_batch(generator(0))
    once, twice = (augmented.real_batch(generator(0)) for _ in range(2))
    assert torch.equal(once[0], twice[0])
    assert torch.equal(once[1], texts)
    assert not torch.equal(once[0], images)
