"""The similarity of merged sets: that of each set along the diagonal, and 0 between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lors.config import SimilarityConfig
from lors.similarity import Diagonal, Identity, LowRank, Similarity, build_similarity

__all__ = ["LowRankParts", "joined_similarity"]


class LowRankParts(LowRank):
    """S = diag(ω) + (α/r) L Rᵀ within each part of the pairs, and 0 between parts.

    The factors of all parts share their r columns, so that a pair holds as many numbers as in a set
    of its own, and one more: its part.

    >>> S = LowRankParts(4, rank=1)
    >>> state = dict.fromkeys(("left", "right"), torch.ones(4, 1))
    >>> state |= {"omega": torch.ones(4), "part": torch.tensor([0, 0, 1, 1])}
    >>> _ = S.load_state_dict(state)
    >>> S.matrix().detach()
    tensor([[2., 1., 0., 0.],
            [1., 2., 0., 0.],
            [0., 0., 2., 1.],
            [0., 0., 1., 2.]])

    Args:
        pairs: N, the number of pairs.
        rank: r, at most N. N(2r + 2) numbers are stored.
        alpha: α, the weight of the low-rank part.
        generator: draws L.
        omega: ω at the start.
    """

    part: Tensor

    def __init__(
        self,
        pairs: int,
        rank: int = 10,
        alpha: float = 1.0,
        generator: torch.Generator | None = None,
        omega: float = 1.0,
    ) -> None:
        super().__init__(pairs, rank, alpha, generator, omega)
        self.register_buffer("part", torch.zeros(pairs))

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return super().stored(config, pairs) + pairs

    def forward(self, index: Tensor) -> Tensor:
        part = self.part[index]
        return super().forward(index) * (part[:, None] == part)


def joined_similarity(parts: Sequence[Similarity]) -> tuple[Similarity, SimilarityConfig]:
    """One similarity over all pairs, and what it is: of the kind that holds the fewest numbers.

    Low-rank parts keep their factors; those of less rank than the largest are filled with zeros. A
    full or a given part makes the whole a full matrix.

    >>> whole, config = joined_similarity([LowRank(3, rank=2), Identity(2)])
    >>> config.kind, whole.numbers(), whole.matrix().detach().equal(torch.eye(5))
    ('lowrank-parts', 30, True)
    >>> joined_similarity([Identity(3), Identity(2)])[1].kind
    'identity'
    """
    pairs = sum(each.pairs for each in parts)
    if all(type(each) is Identity for each in parts):
        return Identity(pairs), SimilarityConfig(kind="identity")
    if all(type(each) in (Identity, Diagonal) for each in parts):
        config, state = SimilarityConfig(kind="diagonal"), {"omega": _omegas(parts)}
    elif all(type(each) in (Identity, Diagonal, LowRank, LowRankParts) for each in parts):
        rank = max(each.left.shape[1] for each in parts if isinstance(each, LowRank))
        config = SimilarityConfig(kind="lowrank-parts", rank=rank, alpha=rank)  # so that α/r = 1
        state = {"omega": _omegas(parts), "part": _numbered(parts)}
        state |= {side: _factors(parts, side, rank) for side in ("left", "right")}
    else:
        config = SimilarityConfig(kind="full")
        state = {"values": torch.block_diag(*(each.matrix().detach().cpu() for each in parts))}
    whole = build_similarity(config, pairs).to(state[next(iter(state))].dtype)
    whole.load_state_dict(state)
    return whole, config


def _omegas(parts: Sequence[Similarity]) -> Tensor:
    """ω of all parts; that of the identity is 1. Shape: (N,)"""
    ones = (getattr(each, "omega", torch.ones(each.pairs)) for each in parts)
    return torch.cat([omega.detach().cpu() for omega in ones])


def _factors(parts: Sequence[Similarity], side: str, rank: int) -> Tensor:
    """L or R of all parts, with the scale of each in L. Shape: (N, r)"""
    rows = []
    for each in parts:
        if not isinstance(each, LowRank):
            rows.append(torch.zeros(each.pairs, rank))
            continue
        values = getattr(each, side).detach().cpu() * (each.scale if side == "left" else 1)
        rows.append(torch.nn.functional.pad(values, (0, rank - values.shape[1])))
    return torch.cat(rows)


def _numbered(parts: Sequence[Similarity]) -> Tensor:
    """The part of each pair, counted over all. Shape: (N,)"""
    numbers, before = [], 0
    for each in parts:
        own = each.part.cpu() if isinstance(each, LowRankParts) else torch.zeros(each.pairs)
        numbers.append(own + before)
        before += 1 + int(own.max())
    return torch.cat(numbers)
