"""Recall@K without sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed.ratio import Ratio, median_seconds, side_by_side
from lors.evaluation.recall import recall

__all__ = ["ratios"]


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


def ratios(
    rounds: int, pairs: int = 5000, captions: int = 5, dims: Sequence[int] = (8, 256)
) -> list[Ratio]:
    """The COCO 5K test: 5,000 images and 25,000 captions.

    Both sides compute all scores, which in large joint spaces is most of what ours does; in 8
    dimensions it costs little, and the ratio is that of the ranking.
    """
    return [_case(rounds, *embeddings(pairs, captions, dim)) for dim in dims]


def embeddings(pairs: int, captions: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random images, captions near them, and the image of each caption."""
    generator = torch.Generator().manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(pairs, dim, generator=generator), dim=1)
    owner = torch.arange(pairs).repeat_interleave(captions)
    noise = torch.randn(len(owner), dim, generator=generator) / 4
    return images, torch.nn.functional.normalize(images[owner] + noise, dim=1), owner


def _case(rounds: int, images: Tensor, texts: Tensor, owner: Tensor) -> Ratio:
    product = median_seconds(lambda: images @ texts.T, rounds)
    return side_by_side(
        f"{len(images):,} images x {len(texts):,} captions, {images.shape[1]} dimensions",
        lambda: recall(images, texts, owner),
        lambda: sorted_recall(images, texts, owner),
        rounds,
        more={"seconds of one matrix product": product},
    )
