from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lors.evaluation.recall import METRICS, chance, recall


def test_perfect_embeddings_are_always_found() -> None:
    eye = torch.eye(12)
    found = recall(eye, eye.repeat_interleave(2, 0), torch.arange(12).repeat_interleave(2))
    assert found.mean == 100.0


def test_ties_never_count_in_favour() -> None:
    same = torch.ones(20, 3)
    found = recall(same, same, torch.arange(20))
    assert found.mean == 0.0


def test_scores_that_are_not_numbers_never_count_in_favour() -> None:
    broken = torch.full((20, 3), torch.nan)
    assert recall(broken, broken, torch.arange(20)).mean == 0.0


def test_an_image_is_found_through_any_of_its_captions() -> None:
    # Image 0 has a bad and a good caption; image 1 one caption, which image 0 resembles more.
    images = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    texts = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.9, 0.1]])
    found = recall(images, texts, torch.tensor([0, 0, 1]))
    # TR@1: image 0 finds caption 1 first; image 1 finds caption 2 first (0.1 against 0).
    assert found.tr1 == 100.0
    # IR@1: caption 0 prefers image 1 (0 against -1), caption 1 finds 0, caption 2 prefers 0.
    assert found.ir1 == pytest.approx(100 / 3)
    assert found.ir5 == 100.0


def test_a_tie_between_right_and_wrong_is_a_miss_but_two_right_ones_may_tie() -> None:
    images = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    owner = torch.tensor([0, 0, 1])
    two_right = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert recall(images, two_right, owner).tr1 == 100.0
    wrong_ties = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert recall(images, wrong_ties, owner).tr1 == 0.0


def test_one_right_caption_that_is_no_number_is_never_in_favour() -> None:
    images, texts = torch.eye(20), torch.eye(20).repeat_interleave(2, 0)
    texts[1] = torch.nan
    found = recall(images, texts, torch.arange(20).repeat_interleave(2))
    assert found.tr1 == 0.0  # image 0 has no best caption, and all others see a score of NaN
    assert found.tr5 == pytest.approx(95.0)
    assert found.ir1 == pytest.approx(97.5)


@pytest.mark.parametrize("sizes", [(1003, 512), (513, 512), (40, 512), (700, 64)])
def test_equal_embeddings_tie_wherever_they_stand(sizes: tuple[int, int]) -> None:
    images, chunk = sizes
    rng = torch.Generator().manual_seed(0)
    u = torch.nn.functional.normalize(torch.randn(images, 384, generator=rng), dim=1)
    order = torch.randperm(2 * images, generator=rng)
    twice = u.repeat(2, 1)[order]
    found = recall(twice, twice.repeat_interleave(3, 0), _triple(2 * images), chunk)
    assert found.ir1 == found.tr1 == 0.0
    assert found.ir5 == found.tr5 == 100.0


def _triple(images: int) -> torch.Tensor:
    return torch.arange(images).repeat_interleave(3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("chunk", [30, 64, 512])
def test_recall_equals_brute_force_in_any_order_of_captions(
    chunk: int, dtype: torch.dtype, rng: torch.Generator
) -> None:
    u = torch.randn(150, 24, generator=rng).to(dtype)
    owner = torch.randint(0, 150, (400,), generator=rng)  # some images have no caption
    v = (u[owner] + 3 * torch.randn(400, 24, generator=rng)).to(dtype)
    scores = u @ v.T
    right = torch.arange(150)[:, None] == owner
    best = torch.where(right, scores, -torch.inf).amax(1, keepdim=True)
    tr = (~right & (scores >= best)).sum(1)
    ir = (~right & (scores >= scores[owner, torch.arange(400)])).sum(0)
    hits = [100 * (rank < k).double().mean().item() for rank in (ir, tr) for k in (1, 5, 10)]
    assert list(asdict(recall(u, v, owner, chunk)).values()) == hits
    assert 0 < hits[0] < hits[2] < 100


@given(
    images=st.integers(1, 9),
    captions=st.integers(1, 3),
    chunk=st.integers(1, 30),
    seed=st.integers(0),
)
def test_recall_equals_sorting(images: int, captions: int, chunk: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed % 2**63)
    # Few different values, so that ties are common.
    u = torch.randint(-1, 2, (images, 3), generator=rng).float()
    v = torch.randint(-1, 2, (images * captions, 3), generator=rng).float()
    owner = torch.arange(images).repeat_interleave(captions)
    found = recall(u, v, owner, chunk)
    scores = u @ v.T
    hits = 0
    for image in range(images):
        best = max(scores[image, c].item() for c in range(len(v)) if owner[c] == image)
        above = sum(scores[image, c].item() >= best for c in range(len(v)) if owner[c] != image)
        hits += above < 5
    assert found.tr5 == pytest.approx(100 * hits / images)
    hits = 0
    for caption in range(len(v)):
        mine = int(owner[caption])
        above = sum(
            bool(scores[i, caption] >= scores[mine, caption]) for i in range(images) if i != mine
        )
        hits += above < 1
    assert found.ir1 == pytest.approx(100 * hits / len(v))


def test_chance_is_what_random_embeddings_reach() -> None:
    owner = np.repeat(np.arange(30), [1, 2, 3] * 10)
    draw = torch.Generator().manual_seed(0)
    found = [
        recall(
            torch.randn(30, 8, generator=draw),
            torch.randn(60, 8, generator=draw),
            torch.from_numpy(owner),
        )
        for _ in range(300)
    ]
    expected = chance(owner)
    for metric in METRICS:
        mean = np.mean([getattr(one, metric) for one in found])
        assert mean == pytest.approx(getattr(expected, metric), abs=1.0)


def test_chance_with_fewer_candidates_than_k_is_certain() -> None:
    assert chance(np.arange(3)).ir5 == chance(np.arange(3)).tr5 == 100.0
