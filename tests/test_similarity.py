from __future__ import annotations

import pytest
import torch

from lors.config import SimilarityConfig
from lors.similarity import SIMILARITIES, Fixed, Full, LowRank, build_similarity
from lors.system.errors import InputError
from lors.system.seeding import generator


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_every_similarity_starts_at_the_identity(kind: str) -> None:
    similarity = build_similarity(SimilarityConfig(kind=kind, rank=3), 6)
    assert torch.equal(similarity.matrix(), torch.eye(6))


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_a_batch_is_a_block_of_the_matrix(kind: str, rng: torch.Generator) -> None:
    similarity = build_similarity(SimilarityConfig(kind=kind, rank=3, alpha=2.0), 6)
    for tensor in similarity.state_dict().values():
        tensor.copy_(torch.randn(tensor.shape, generator=rng))
    index = torch.tensor([4, 0, 2])
    torch.testing.assert_close(similarity(index), similarity.matrix()[index][:, index])
    torch.testing.assert_close(similarity.diagonal(), similarity.matrix().diagonal())


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_numbers_stored_are_known_before_building(kind: str) -> None:
    config = SimilarityConfig(kind=kind, rank=2)
    similarity = build_similarity(config, 5)
    assert type(similarity).stored(config, 5) == similarity.numbers()


def test_lowrank_is_the_papers_formula(rng: torch.Generator) -> None:
    similarity = LowRank(5, rank=2, alpha=3.0)
    for parameter in similarity.parameters():
        torch.nn.init.normal_(parameter, generator=rng)
    omega, left, right = similarity.omega, similarity.left, similarity.right
    expected = torch.diag(omega) + 3.0 / 2 * left @ right.T
    torch.testing.assert_close(similarity.matrix(), expected)
    assert similarity.numbers() == 5 * (2 * 2 + 1)


def test_lowrank_gradient_does_not_vanish_at_the_start() -> None:
    similarity = LowRank(5, rank=2)
    similarity(torch.arange(5)).sum().backward()
    assert similarity.right.grad is not None
    assert similarity.right.grad.abs().sum() > 0


@pytest.mark.parametrize("rank", [0, -1, 6])
def test_rank_must_fit_the_pairs(rank: int) -> None:
    with pytest.raises(InputError, match="rank"):
        LowRank(5, rank=rank)


def test_fixed_similarity_must_be_square() -> None:
    with pytest.raises(InputError, match=r"shape \(3, 3\)"):
        Fixed(3, torch.ones(3, 4))


def test_fixed_similarity_learns_nothing() -> None:
    assert not list(Fixed(3, torch.ones(3, 3)).parameters())


def test_unknown_kind_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'lowrank'"):
        build_similarity(SimilarityConfig(kind="lowrnk"), 5)


def test_a_configured_rank_is_at_most_the_number_of_pairs() -> None:
    config = SimilarityConfig(kind="lowrank", rank=40, alpha=6.0, omega=3.0)
    built = build_similarity(config, 4)
    assert isinstance(built, LowRank)
    assert built.left.shape == (4, 4)
    assert built.scale == 1.5
    assert built.numbers() == LowRank.stored(config, 4)
    assert torch.equal(built.matrix(), 3 * torch.eye(4))


@pytest.mark.parametrize(("pairs", "blocks"), [(6, 2), (7, 3), (5, 1), (3, 5)])
def test_blocks_are_a_full_similarity_of_each_part_and_nothing_between(
    pairs: int, blocks: int
) -> None:
    config = SimilarityConfig(kind="full", blocks=blocks)
    similarity = build_similarity(config, pairs)
    for parameter in similarity.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator(0))
    parts = torch.arange(pairs).tensor_split(min(blocks, pairs))
    matrix, outside = similarity.matrix(), torch.ones(pairs, pairs)
    for part in parts:
        assert (matrix[part[:, None], part] != 0).all()
        outside[part[:, None], part] = 0
    assert not (matrix * outside).any()
    assert similarity.numbers() == sum(len(p) ** 2 for p in parts) == Full.stored(config, pairs)
    index = torch.tensor([2, 0, pairs - 1])
    torch.testing.assert_close(similarity(index), matrix[index[:, None], index])
    similarity(index).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in similarity.parameters())
