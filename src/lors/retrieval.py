"""Recall@K of cross-modal retrieval."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from torch import Tensor

__all__ = ["METRICS", "Recall", "chance", "metric_label", "recall"]


@dataclass(frozen=True)
class Recall:
    """Recalls in percent. IR: captions query images. TR: images query captions."""

    ir1: float
    ir5: float
    ir10: float
    tr1: float
    tr5: float
    tr10: float

    @property
    def mean(self) -> float:
        """The average of the six, the field's single figure."""
        return sum(asdict(self).values()) / len(fields(self))


METRICS = tuple(field.name for field in fields(Recall))
"""The names of the six recalls."""


def metric_label(metric: str) -> str:
    """A recall as the field writes it.

    >>> metric_label("ir10")
    'IR@10'
    """
    return f"{metric[:2].upper()}@{metric[2:]}"


def recall(images: Tensor, texts: Tensor, owner: Tensor, chunk: int = 1024) -> Recall:
    """Recall@1/5/10 in both directions.

    A query is a hit at K if fewer than K wrong answers score at least as much as its best right
    one: ties, and scores that are not numbers, never count in favour.

    Args:
        images: normalised image embeddings. Shape: (M, d)
        texts: normalised caption embeddings. Shape: (C, d)
        owner: the image that each caption describes. Shape: (C,)
        chunk: queries scored at a time, which bounds memory to chunk x gallery.
    """
    captions = torch.arange(len(texts), device=owner.device)
    ir, tr = [], []
    for query in captions.split(chunk):
        scores = texts[query] @ images.T
        best = scores.gather(1, owner[query, None])
        wrong_above = (~(scores < best)).sum(1) - 1  # the right image itself is not below itself
        ir.append(wrong_above)
    for query in torch.arange(len(images), device=owner.device).split(chunk):
        scores = images[query] @ texts.T
        right = owner == query[:, None]
        best = scores.masked_fill(~right, -torch.inf).amax(1, keepdim=True)
        tr.append((~(scores < best) & ~right).sum(1))
    return Recall(*_hits(torch.cat(ir)), *_hits(torch.cat(tr)))


def chance(owner: np.ndarray) -> Recall:
    """What a random ranking reaches on average.

    Args:
        owner: the image that each caption describes, ascending. Shape: (C,)

    >>> chance(np.array([0, 1, 2, 3])).ir1
    25.0
    """
    captions, images = len(owner), int(owner[-1]) + 1
    own = np.bincount(owner, minlength=images)
    ir = [100.0 * min(1.0, k / images) for k in (1, 5, 10)]
    tr = []
    for k in (1, 5, 10):
        # None of the k captions drawn without replacement is one of the image's own.
        drawn = np.arange(min(k, captions))
        missed = np.clip(1 - own[:, None] / (captions - drawn), 0, 1).prod(1)
        tr.append(100.0 * float((1 - missed).mean()))
    return Recall(*ir, *tr)


def _hits(rank: Tensor) -> list[float]:
    return [100.0 * (rank < k).double().mean().item() for k in (1, 5, 10)]
