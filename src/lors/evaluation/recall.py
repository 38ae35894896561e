"""Recall@K of cross-modal retrieval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from torch import Tensor

from lors.system.transfers import moved_together

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


@torch.no_grad()
def recall(images: Tensor, texts: Tensor, owner: Tensor, chunk: int = 512) -> Recall:
    """Recall@1/5/10 in both directions.

    >>> images, texts = torch.eye(20), torch.eye(20).roll(1, dims=0)
    >>> texts[:10] = images[:10]  # the other ten describe the image before
    >>> recall(images, texts, torch.arange(20)).ir1
    50.0

    A query is a hit at K if fewer than K wrong answers score at least as much as its best right
    one: ties, and scores that are not numbers, never count in favour. So nothing need be sorted:
    wrong answers are counted, in both directions in one pass over tiles of the scores.

    Args:
        images: normalised image embeddings. Shape: (M, d)
        texts: normalised caption embeddings. Shape: (C, d)
        owner: the image that each caption describes. Shape: (C,)
        chunk: images and captions scored at a time, which bounds memory to two tiles of
            chunk x chunk; the default fits into a CPU's cache.
    """
    tiles = _Tiles(images, texts, chunk)
    right = _right_scores(tiles, owner)
    best = right.new_full((len(images),), -torch.inf)
    best = best.scatter_reduce(0, owner, right, "amax")
    # From all answers that are not below the best right one, take the right ones among them.
    ir = torch.full_like(owner, -1)
    tr = owner.new_zeros(len(images)).index_add(0, owner, -(~(right < best[owner])).to(owner))
    buffer = tiles.buffer()
    for i, c in tiles.places():
        scores = tiles.score(i, c)
        below = buffer[: scores.numel()].view_as(scores)
        torch.lt(scores, best[i, None], out=below)
        tr[i] += scores.shape[1] - below.sum(1, dtype=torch.float32).to(owner)
        torch.lt(scores, right[c], out=below)
        ir[c] += scores.shape[0] - below.sum(0, dtype=torch.float32).to(owner)
    return Recall(*_hits(ir), *_hits(tr))


class _Tiles:
    """The scores of all images with all captions, tile by tile into one buffer.

    A tile has the same bits whenever it is computed. All are nearly of one size: matrix products
    round slivers differently, and equal embeddings would no longer tie.

    Args:
        images: Shape: (M, d)
        texts: Shape: (C, d)
        chunk: the largest side of a tile.
    """

    def __init__(self, images: Tensor, texts: Tensor, chunk: int) -> None:
        self.images, self.texts = images, texts
        self.rows, self.columns = (-(-len(side) // chunk) for side in (images, texts))
        self.height, self.width = -(-len(images) // self.rows), -(-len(texts) // self.columns)
        self._scores = self.buffer()

    def buffer(self) -> Tensor:
        """Room for one tile."""
        return self.images.new_empty(self.height * self.width)

    def place(self, row: int, column: int) -> tuple[slice, slice]:
        """The images and the captions of a tile."""
        i, c = row * self.height, column * self.width
        return slice(i, i + self.height), slice(c, c + self.width)

    def places(self) -> Iterator[tuple[slice, slice]]:
        """The images and the captions of every tile."""
        for row in range(self.rows):
            for column in range(self.columns):
                yield self.place(row, column)

    def score(self, i: slice, c: slice) -> Tensor:
        """A tile, valid until the next one is asked for. Shape: (images, captions)"""
        images, texts = self.images[i], self.texts[c]
        scores = self._scores[: len(images) * len(texts)].view(len(images), len(texts))
        return torch.mm(images, texts.T, out=scores)


def _right_scores(tiles: _Tiles, owner: Tensor) -> Tensor:
    """The score of each caption with its own image, as in its tile. Shape: (C,)"""
    right, known = tiles.texts.new_empty(len(owner)), owner.cpu()
    captions = torch.arange(len(owner))
    rows = known // tiles.height
    for row, column in torch.stack([rows, captions // tiles.width], 1).unique(dim=0).tolist():
        i, c = tiles.place(row, column)
        here = captions[c][rows[c] == row]
        places = here, known[here] - i.start, here - c.start
        here, image, caption = moved_together(places, owner.device)
        right[here] = tiles.score(i, c)[image, caption]
    return right


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
    hits = torch.stack([(rank < k).sum() for k in (1, 5, 10)]).tolist()
    return [100.0 * (found / len(rank)) for found in hits]
