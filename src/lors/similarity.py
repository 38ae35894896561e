"""The ground-truth similarity S between N synthetic images and N synthetic texts.

A similarity is a module: its parameters are what is learned and stored, and calling it with the
indices of a batch gives that batch's (m, m) block of S. A batch never builds the N x N matrix.

>>> S = LowRank(100, rank=10, alpha=3.0)
>>> S(torch.tensor([4, 7])).shape
torch.Size([2, 2])

Paper: section 3.2 (similarity mining) and 3.4 (low rank), https://arxiv.org/abs/2406.03793
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from lors.config import SimilarityConfig, names
from lors.system.errors import InputError
from lors.system.registry import Registry

__all__ = [
    "SIMILARITIES",
    "Blocks",
    "Diagonal",
    "Fixed",
    "Full",
    "Identity",
    "LowRank",
    "Similarity",
    "build_similarity",
]


class Similarity(nn.Module, ABC):
    """S over N pairs.

    Args:
        pairs: N, the number of pairs.
    """

    def __init__(self, pairs: int) -> None:
        super().__init__()
        if pairs < 1:
            raise InputError(f"a similarity needs at least one pair, not {pairs}")
        self.pairs = pairs

    @abstractmethod
    def forward(self, index: Tensor) -> Tensor:
        """The block of S for the pairs in ``index``. Shape: (m,) -> (m, m)."""

    def matrix(self) -> Tensor:
        """The whole of S, for looking at. Shape: (N, N)."""
        device = next((p.device for p in self.state_dict().values()), None)
        return self(torch.arange(self.pairs, device=device))

    @torch.no_grad()
    def diagonal(self) -> Tensor:
        """The similarities of the pairs themselves, without building S. Shape: (N,)"""
        device = next((p.device for p in self.state_dict().values()), None)
        blocks = torch.arange(self.pairs, device=device).split(64)
        return torch.cat([self(index).diagonal() for index in blocks])

    def divide(self, parts: int) -> None:
        """Prepare for so many parts of the pairs that are learned apart; most need nothing."""

    def numbers(self) -> int:
        """How many numbers must be stored."""
        return sum(tensor.numel() for tensor in self.state_dict().values())

    @classmethod
    @abstractmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        """``numbers()`` of what ``from_config`` would build, without building it."""

    @classmethod
    def from_config(
        cls, config: SimilarityConfig, pairs: int, generator: torch.Generator | None = None
    ) -> Similarity:
        """Build from a configuration, for N = ``pairs``; starts at S = I, or ω times that."""
        return cls(pairs)


class Identity(Similarity):
    """S = I: image i belongs to text i and to no other. Nothing is learned or stored."""

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return 0

    def forward(self, index: Tensor) -> Tensor:
        return torch.eye(len(index), device=index.device)


class Diagonal(Similarity):
    """S = diag(ω): each pair has a weight. The paper's ablation 12.

    Args:
        pairs: N, the number of pairs.
        omega: ω at the start.
    """

    def __init__(self, pairs: int, omega: float = 1.0) -> None:
        super().__init__(pairs)
        self.omega = nn.Parameter(torch.full((pairs,), omega))

    @classmethod
    def from_config(
        cls, config: SimilarityConfig, pairs: int, generator: torch.Generator | None = None
    ) -> Diagonal:
        return cls(pairs, config.omega)

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return pairs

    def forward(self, index: Tensor) -> Tensor:
        return torch.diag_embed(self.omega[index])


class LowRank(Similarity):
    """LoRS: S = diag(ω) + (α/r) L Rᵀ with ω = 1, L ~ N(0, 1), R = 0 at the start, so S = I.

    Args:
        pairs: N, the number of pairs.
        rank: r, at most N. N(2r + 1) numbers are stored.
        alpha: α, the weight of the low-rank part.
        generator: draws L.
        omega: ω at the start.
    """

    def __init__(
        self,
        pairs: int,
        rank: int = 10,
        alpha: float = 1.0,
        generator: torch.Generator | None = None,
        omega: float = 1.0,
    ) -> None:
        super().__init__(pairs)
        if not 1 <= rank <= pairs:
            raise InputError(
                f"the rank of the similarity must be between 1 and the number of pairs ({pairs}), "
                f"not {rank}: set similarity.rank"
            )
        self.scale = alpha / rank
        self.omega = nn.Parameter(torch.full((pairs,), omega))
        self.left = nn.Parameter(torch.randn(pairs, rank, generator=generator))
        self.right = nn.Parameter(torch.zeros(pairs, rank))

    @torch.no_grad()
    def divide(self, parts: int) -> None:
        """Give each of so many parts of the pairs columns of its own, and the others none of them.

        Pairs of two parts, whose factors are never learned together, then keep a similarity of 0.
        """
        rank = self.left.shape[1]
        own = torch.zeros_like(self.left)
        split = (torch.arange(n).tensor_split(parts) for n in (len(own), rank))
        for pairs, columns in zip(*split, strict=True):
            own[pairs[:, None], columns] = 1
        self.left.mul_(own)

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return pairs * (2 * min(config.rank, pairs) + 1)

    def forward(self, index: Tensor) -> Tensor:
        low_rank = self.scale * self.left[index] @ self.right[index].T
        return torch.diag_embed(self.omega[index]) + low_rank

    @classmethod
    def from_config(
        cls, config: SimilarityConfig, pairs: int, generator: torch.Generator | None = None
    ) -> LowRank:
        rank = min(config.rank, pairs)  # beyond N there is nothing more to say
        return cls(pairs, rank, config.alpha, generator, config.omega)


class Full(Similarity):
    """Every one of the N² similarities is learned. The paper's ablations 1 to 3."""

    def __init__(self, pairs: int) -> None:
        super().__init__(pairs)
        self.values = nn.Parameter(torch.eye(pairs))

    @classmethod
    def from_config(
        cls, config: SimilarityConfig, pairs: int, generator: torch.Generator | None = None
    ) -> Similarity:
        return cls(pairs) if config.blocks == 1 else Blocks(pairs, config.blocks)

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return sum(size**2 for size in _sizes(pairs, config.blocks))

    def forward(self, index: Tensor) -> Tensor:
        return self.values[index[:, None], index]


class Blocks(Similarity):
    """A full S for parts that are learned apart: blocks along the diagonal, and 0 elsewhere.

    >>> S = Blocks(5, blocks=2)
    >>> S.numbers(), S.matrix().equal(torch.eye(5))
    (13, True)

    Args:
        pairs: N, the number of pairs.
        blocks: how many; their sizes differ by at most one.
    """

    part: Tensor
    first: Tensor
    place: Tensor

    def __init__(self, pairs: int, blocks: int) -> None:
        super().__init__(pairs)
        sizes = _sizes(pairs, blocks)
        self.values = nn.Parameter(torch.cat([torch.eye(size).flatten() for size in sizes]))
        part = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        widths = torch.tensor(sizes)[part]
        starts, before = torch.tensor(sizes).square().cumsum(0), torch.tensor(sizes).cumsum(0)
        place = torch.arange(pairs) - (before - torch.tensor(sizes))[part]
        first = (starts - torch.tensor(sizes).square())[part] + place * widths
        # The number of pair i with pair j of the same part is first[i] + place[j].
        for name, known in (("part", part), ("first", first), ("place", place)):
            self.register_buffer(name, known, persistent=False)

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return Full.stored(config, pairs)

    def forward(self, index: Tensor) -> Tensor:
        same = self.part[index][:, None] == self.part[index]
        numbers = self.first[index][:, None] + self.place[index]
        return torch.where(same, self.values[torch.where(same, numbers, 0)], 0)


def _sizes(pairs: int, blocks: int) -> list[int]:
    """Of parts as equal as can be, as ``tensor_split`` makes them.

    >>> _sizes(5, 2)
    [3, 2]
    """
    blocks = min(blocks, pairs)
    return [pairs // blocks + (number < pairs % blocks) for number in range(blocks)]


class Fixed(Similarity):
    """A given S, for example from a pretrained CLIP (the paper's ablation 17). Not learned.

    Args:
        pairs: N, the number of pairs.
        values: S, of shape (N, N); the identity until it is given.
    """

    values: Tensor

    def __init__(self, pairs: int, values: Tensor | None = None) -> None:
        super().__init__(pairs)
        values = torch.eye(pairs) if values is None else values
        if values.shape != (pairs, pairs):
            raise InputError(
                f"a fixed similarity of {pairs} pairs must have shape ({pairs}, {pairs}), "
                f"not {tuple(values.shape)}"
            )
        self.register_buffer("values", values)

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return pairs**2

    def forward(self, index: Tensor) -> Tensor:
        return self.values[index[:, None], index]


SIMILARITIES: Registry[type[Similarity]] = names.SIMILARITIES


def build_similarity(
    config: SimilarityConfig, pairs: int, generator: torch.Generator | None = None
) -> Similarity:
    """The similarity a configuration asks for."""
    return SIMILARITIES.choose(config.kind).from_config(config, pairs, generator)
