from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.setting import Setting
from lors.setting.neighbours import nearest, nearest_captions, nearest_images


@pytest.mark.parametrize("chunk", [1, 3, 50])
def test_nearest_in_chunks_is_a_full_sort(chunk: int) -> None:
    draw = torch.Generator().manual_seed(0)
    queries, rows = torch.randn(4, 6, generator=draw), torch.randn(20, 6, generator=draw)
    found = nearest(queries, rows.split(chunk), 5)
    cosine = torch.cosine_similarity(queries[:, None], rows[None], dim=2)
    assert (found.index == cosine.argsort(dim=1, descending=True)[:, :5].numpy()).all()
    np.testing.assert_allclose(found.cosine, cosine.sort(dim=1, descending=True)[0][:, :5], 1e-5)


def test_fewer_candidates_than_asked_for() -> None:
    found = nearest(torch.eye(2), [torch.eye(2)], 5)
    assert found.index.tolist() == [[0, 1], [1, 0]]


def test_real_pairs_are_nearest_to_themselves(setting: Setting) -> None:
    images = np.array([3, 0, 11])
    captions = np.searchsorted(setting.real["train"].owner, images)
    pairs = setting.plain_pairs(images, captions)
    assert nearest_images(setting, pairs.images).index[:, 0].tolist() == images.tolist()
    found = nearest_captions(setting, pairs.texts)
    np.testing.assert_allclose(found.cosine[:, 0], 1, rtol=1e-5)
    texts = setting.pairs.splits["train"].captions  # one caption may occur more than once
    assert [texts[i] for i in found.index[:, 0]] == [texts[i] for i in captions]
