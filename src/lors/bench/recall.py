"""Recall@K without sorting."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lors.bench.ratio import Ratio, side_by_side
from lors.retrieval import recall

__all__ = ["bench"]


def sorted_recall(images: Tensor, texts: Tensor, owner: Tensor) -> list[float]:
    """All scores at once, every query's sorted, ranks looked up one by one."""
    scores = (images @ texts.T).numpy()
    owners = owner.numpy()
    text_ranks = np.empty(len(images))
    for image, row in enumerate(scores):
        order = np.argsort(row)[::-1]
        text_ranks[image] = np.flatnonzero(owners[order] == image)[0]
    image_ranks = np.empty(len(texts))
    for caption, column in enumerate(scores.T):
        order = np.argsort(column)[::-1]
        image_ranks[caption] = np.flatnonzero(order == owners[caption])[0]
    ranks = (image_ranks, text_ranks)
    return [100.0 * float((each < k).mean()) for each in ranks for k in (1, 5, 10)]


def bench(rounds: int, pairs: int = 5000, captions: int = 5, dim: int = 256) -> list[Ratio]:
    """The COCO 5K test: 5,000 images and 25,000 captions."""
    generator = torch.Generator().manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(pairs, dim, generator=generator), dim=1)
    owner = torch.arange(pairs).repeat_interleave(captions)
    noise = torch.randn(len(owner), dim, generator=generator) / 4
    texts = torch.nn.functional.normalize(images[owner] + noise, dim=1)
    return [
        side_by_side(
            f"{pairs:,} images x {len(owner):,} captions, {dim} dimensions",
            lambda: recall(images, texts, owner),
            lambda: sorted_recall(images, texts, owner),
            rounds,
        )
    ]
