from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.encoders import EncodedSplit
from lors.setting import Setting, setting_of


@pytest.fixture
def split() -> EncodedSplit:
    """Ten images with one to four captions; a caption's first number names its image."""
    owner = np.repeat(np.arange(10), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2])
    texts = np.stack([owner, np.arange(len(owner))], 1).astype(np.int32)
    return EncodedSplit(np.arange(10, dtype=np.float32)[:, None], texts, owner)


@pytest.mark.parametrize(("captions", "count"), [("one", 10), ("each", 23)])
def test_an_epoch_pairs_images_with_their_own_captions(
    split: EncodedSplit, setting: Setting, captions: str, count: int
) -> None:
    batches = list(split.epoch(setting.flat.model, 4, captions, False, 0))
    images = torch.cat([x for _, x, _ in batches])[:, 0].long()
    texts = torch.cat([y for _, _, y in batches])
    assert torch.equal(images, texts[:, 0])
    assert images.tolist() == [i for index, _, _ in batches for i in index]
    assert len(images) == count
    assert len(set(texts[:, 1].tolist())) == count
    assert set(images.tolist()) == set(range(10))


def test_an_epoch_is_a_function_of_its_keys(split: EncodedSplit, setting: Setting) -> None:
    def order(*keys: int) -> list[float]:
        epoch = split.epoch(setting.flat.model, 4, "one", False, *keys)
        return [value for _, _, texts in epoch for value in texts[:, 1].tolist()]

    assert order(0, 1) == order(0, 1) != order(0, 2)


def test_scope_heads_encodes_images_once() -> None:
    heads = setting_of(load_config("tiny", ["encoder.scope=heads", "encoder.image_head=linear"]))
    split = heads.pairs.splits["val"]
    encoded = heads.real["val"]
    assert encoded.images.shape == (len(split), 128)
    model = heads.flat.model
    pixels = EncodedSplit(split.images, encoded.texts, encoded.owner)
    index = np.array([3, 7])
    torch.testing.assert_close(encoded.inputs(index, model), pixels.inputs(index, model))


def test_scope_heads_keeps_pixels_for_augmentation() -> None:
    heads = setting_of(
        load_config(
            "tiny", ["encoder.scope=heads", "encoder.image_head=linear", "data.augment=true"]
        )
    )
    assert heads.real["train"].images.dtype == np.uint8
    assert heads.real["val"].images.dtype == np.float32
    train = heads.real["train"]
    plain, augmented = (
        next(train.epoch(heads.flat.model, 8, "one", a, 0))[1] for a in (False, True)
    )
    assert plain.shape == augmented.shape == (8, 128)
    assert not torch.allclose(plain, augmented)
