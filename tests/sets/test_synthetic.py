from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lors.config import SimilarityConfig
from lors.sets.synthetic import RATE_FLOOR, SyntheticPairs, pairs_within
from lors.similarity import SIMILARITIES, LowRank, build_similarity
from lors.system.errors import InputError

PAPER_PAIR = 3 * 224**2 + 768


@pytest.mark.parametrize(
    ("budget", "rank"), [(100, 10), (200, 5), (200, 20), (500, 20), (500, 150)]
)
def test_one_pair_less_pays_for_the_papers_similarity(budget: int, rank: int) -> None:
    config = SimilarityConfig(kind="lowrank", rank=rank)
    assert pairs_within(budget, PAPER_PAIR, config) == budget - 1


def test_plain_pairs_cost_what_they_are() -> None:
    assert pairs_within(100, PAPER_PAIR, SimilarityConfig(kind="identity")) == 100


@given(
    kind=st.sampled_from(sorted(SIMILARITIES)),
    budget=st.integers(1, 60),
    rank=st.integers(1, 5),
    size=st.integers(2, 40),
)
def test_the_budget_is_kept_and_used(kind: str, budget: int, rank: int, size: int) -> None:
    config = SimilarityConfig(kind=kind, rank=rank)
    try:
        count = pairs_within(budget, size, config)
    except InputError:
        count = 0
    assume(count >= rank)
    images, texts = torch.zeros(count, size - 1), torch.zeros(count, 1)
    pairs = SyntheticPairs(images, texts, build_similarity(config, count))
    assert pairs.storage() <= budget
    # One more pair would not fit.
    more = (count + 1) * size + SIMILARITIES[kind].stored(config, count + 1)
    assert more > budget * size


def test_a_budget_too_small_for_its_similarity_is_refused() -> None:
    with pytest.raises(InputError, match=r"raise distill\.budget"):
        pairs_within(1, 10, SimilarityConfig(kind="lowrank", rank=5))


def test_parts_must_belong_together() -> None:
    with pytest.raises(InputError, match="3 images, 2 texts"):
        SyntheticPairs(torch.zeros(3, 1), torch.zeros(2, 1))
    with pytest.raises(InputError, match="similarity of 4"):
        SyntheticPairs(torch.zeros(3, 1), torch.zeros(3, 1), LowRank(4, rank=1))


def test_a_pass_shows_every_pair_once() -> None:
    pairs = SyntheticPairs(torch.zeros(7, 1), torch.zeros(7, 1))
    batches = list(islice(pairs.passes(3, torch.Generator().manual_seed(0)), 6))
    assert [len(batch) for batch in batches] == [3, 3, 1, 3, 3, 1]
    assert sorted(torch.cat(batches[:3]).tolist()) == list(range(7))


def test_gather_keeps_images_texts_and_similarity_together() -> None:
    values = torch.arange(4.0)[:, None]
    similarity = LowRank(4, rank=1)
    similarity.omega.data = torch.arange(4.0)
    pairs = SyntheticPairs(values, -values, similarity)
    (batch,) = pairs.gather([torch.tensor([2, 0])], pairs.images.__getitem__)
    assert batch.inputs[:, 0].tolist() == [2, 0]
    assert batch.texts[:, 0].tolist() == [-2, 0]
    assert batch.similarity.diagonal().tolist() == [2, 0]


def test_only_pairs_in_use_are_encoded_and_each_once() -> None:
    pairs = SyntheticPairs(torch.arange(9.0)[:, None], torch.zeros(9, 1))
    asked: list[list[int]] = []

    def encode(index: torch.Tensor) -> torch.Tensor:
        asked.append(index.tolist())
        return 10 * pairs.images[index]

    batches = pairs.gather([torch.tensor([7, 2]), torch.tensor([2, 4])], encode)
    assert asked == [[2, 4, 7]]
    assert [batch.inputs[:, 0].tolist() for batch in batches] == [[70, 20], [20, 40]]


def test_rates_stay_positive() -> None:
    pairs = SyntheticPairs(torch.zeros(1, 1), torch.zeros(1, 1), rates=(-1.0, 0.2))
    pairs.clamp_rates()
    assert pairs.rates.tolist() == pytest.approx([RATE_FLOOR, 0.2])
