"""What distillation learns: synthetic images, texts, their similarity and two inner rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from lors.config import EvaluateConfig, SimilarityConfig
from lors.similarity import SIMILARITIES, Identity, Similarity
from lors.system.errors import InputError
from lors.system.transfers import moved_together
from lors.training import Batch

__all__ = ["SyntheticPairs", "pairs_within"]

RATE_FLOOR = 1e-4
"""Learned inner rates stay above this: a rate of zero or less would never recover."""


class SyntheticPairs(nn.Module):
    """N image-text pairs and the similarity between all of them.

    >>> pairs = SyntheticPairs(torch.zeros(4, 12), torch.zeros(4, 10), rates=(0.1, 0.2))
    >>> len(pairs), pairs.pair_numbers(), pairs.storage()
    (4, 22, 4.0)
    >>> pairs.similarity.matrix().diagonal()
    tensor([1., 1., 1., 1.])

    Args:
        images: normalised images. Shape: (N, 3, size, size)
        texts: text embeddings. Shape: (N, text_dim)
        similarity: S over the N pairs; the identity if left out.
        rates: the learning rates of the image and the text side.
    """

    def __init__(
        self,
        images: Tensor,
        texts: Tensor,
        similarity: Similarity | None = None,
        rates: Sequence[float] = (0.1, 0.1),
    ) -> None:
        super().__init__()
        similarity = similarity or Identity(len(images))
        if not len(images) == len(texts) == similarity.pairs:
            raise InputError(
                f"{len(images)} images, {len(texts)} texts and a similarity of {similarity.pairs} "
                "pairs do not belong together: give as many of each"
            )
        self.images = nn.Parameter(images)
        self.texts = nn.Parameter(texts)
        self.similarity = similarity.to(images.device)
        self.rates = nn.Parameter(images.new_tensor(rates))

    def __len__(self) -> int:
        return len(self.images)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The learnable tensors by part, for learning rates and for holding parts fixed."""
        return {
            "images": [self.images],
            "texts": [self.texts],
            "similarity": list(self.similarity.parameters()),
            "rates": [self.rates],
        }

    def gather(
        self,
        indices: Sequence[Tensor],
        inputs: Callable[[Tensor], Tensor],
        part: Callable[[Tensor], Tensor] = lambda index: index,
    ) -> list[Batch]:
        """The batches at these indices, differentiable in every part.

        Args:
            indices: of each batch, on the CPU, where a GPU need not be asked which pairs are in
                use. Shape of each: (m,)
            inputs: what the trainable part takes of the pairs at distinct indices. It is asked once
                for all batches, so that what is frozen is computed once, and only for pairs in use.
            part: which of a batch's indices to take images and texts of; S is always whole.
        """
        parts = [part(index) for index in indices]
        sizes = [len(index) for index in parts]
        every = torch.cat(parts)
        known = [*every.unique(return_inverse=True), every, *indices]
        used, places, every, *indices = moved_together(known, self.images.device)
        images = inputs(used).index_select(0, places).split(sizes)
        texts = self.texts.index_select(0, every).split(sizes)
        blocks = [self.similarity(index).to(self.images.dtype) for index in indices]
        return [Batch(*parts) for parts in zip(images, texts, blocks, strict=True)]

    def passes(
        self,
        batch_size: int,
        generator: torch.Generator,
        among: Tensor | None = None,
        drop_last: bool = False,
    ) -> Iterator[Tensor]:
        """Indices of shuffled batches on the CPU, pass after pass over the set, without end.

        Args:
            batch_size: m.
            generator: shuffles.
            among: the pairs to pass over, if not all. Shape: (n,)
            drop_last: whether to leave out the last batch of a pass if it is smaller than the rest.
        """
        among = torch.arange(len(self)) if among is None else among
        while True:
            order = among[torch.randperm(len(among), generator=generator)]
            if drop_last and len(order) > batch_size:
                order = order[: len(order) // batch_size * batch_size]
            yield from order.split(batch_size)

    def drawn(self, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Indices of batches on the CPU, each drawn from the whole set, without end."""
        while True:
            yield torch.randperm(len(self), generator=generator)[:batch_size]

    def in_protocol(self, protocol: EvaluateConfig, generator: torch.Generator) -> Iterator[Tensor]:
        """Indices of the batches that a network is trained on when the set is evaluated."""
        batches = self.drawn if protocol.reading == "published" else self.passes
        return batches(protocol.batch_size, generator)

    @torch.no_grad()
    def clamp_rates(self) -> None:
        """Keep the inner rates positive."""
        self.rates.clamp_(min=RATE_FLOOR)

    def pair_numbers(self) -> int:
        """How many numbers one plain pair holds."""
        return self.images[0].numel() + self.texts[0].numel()

    def storage(self) -> float:
        """Storage in pair-equivalents: how many plain pairs hold as many numbers."""
        return len(self) + self.similarity.numbers() / self.pair_numbers()


def pairs_within(
    budget: int, pair_numbers: int, similarity: SimilarityConfig, most: int | None = None
) -> int:
    """The largest N whose pairs and similarity hold no more numbers than ``budget`` plain pairs.

    With the paper's sizes this is the paper's rule: one pair less pays for the low-rank similarity.

    Args:
        budget: storage in plain pairs.
        pair_numbers: numbers in one image and one text.
        similarity: its kind and rank.
        most: N is never larger than this.

    >>> pairs_within(500, 3 * 224**2 + 768, SimilarityConfig(kind="lowrank", rank=20))
    499
    """
    kind = SIMILARITIES.choose(similarity.kind)
    for pairs in range(min(budget, most or budget), 0, -1):
        if pairs * pair_numbers + kind.stored(similarity, pairs) <= budget * pair_numbers:
            return pairs
    raise InputError(
        f"a budget of {budget} pairs cannot hold a {similarity.kind} similarity: raise "
        "distill.budget or lower similarity.rank"
    )
