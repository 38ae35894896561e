"""Semantic de-duplication: random pairs among those that are not nearly the same as another."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from lors.selection.candidates import Candidates, check_count
from lors.selection.k_means import Rows, k_means
from lors.selection.pool import Choice, Pool

__all__ = ["by_deduplication", "redundancy"]

KEPT = 0.5
"""The share of the pairs that is left, as in the paper's main setting."""


def redundancy(candidates: Candidates, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """How similar each pair is to one that would be kept before it in its cluster.

    K-means divides the pairs by direction. In a cluster, those farthest from the centroid come
    first; a pair's redundancy is its highest cosine with one before it, and -1 for the first. To
    drop all above 1 - ε is SemDeDup.

    Paper: https://arxiv.org/abs/2303.09540 (Abbas et al. 2023), which clusters image embeddings

    Args:
        candidates: joint features of M pairs.
        clusters: K, how many.
        rng: draws the pairs that k-means starts from.

    Returns:
        Shape: (M,)
    """
    unit = F.normalize(torch.cat([block for _, block in candidates.blocks()]), dim=1)
    found = k_means(Rows(unit), clusters, rng)
    scores = torch.full((len(unit),), -1.0)
    for number, centroid in enumerate(found.centroids):
        inside = (found.members == number).nonzero().flatten()
        order = inside[(unit[inside] @ centroid).argsort(stable=True)]
        if len(order) > 1:
            cosines = unit[order] @ unit[order].T
            before = torch.ones_like(cosines, dtype=torch.bool).tril(-1)
            scores[order[1:]] = cosines.masked_fill(~before, -1.0).amax(1)[1:]
    return scores.numpy().astype(np.float64)


def by_deduplication(pool: Pool, count: int) -> Choice:
    """The selection ``deduplication``: random among the less redundant half; its score is that."""
    check_count(count, len(pool))
    scores = redundancy(pool.everything, max(1, round(len(pool) ** 0.5)), pool.rng)
    kept = np.argsort(scores, kind="stable")[: max(count, round(KEPT * len(pool)))]
    chosen = pool.rng.choice(kept, count, replace=False)
    return chosen, scores[chosen]
