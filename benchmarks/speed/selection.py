"""Selection by running sums and nearest distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.selection.candidates import Candidates
from lors.selection.herding import herding
from lors.selection.k_center import k_center
from lors.selection.pool import Choice

__all__ = ["joint", "plain_herding", "plain_k_center", "ratios", "some_pairs"]

Select = Callable[[Candidates, int], Choice]


def plain_herding(features: np.ndarray, count: int) -> list[int]:
    """At every pick, what each candidate would make of the mean, and its distance."""
    mean = features.mean(0)
    chosen: list[int] = []
    for _ in range(count):
        total = features[chosen].sum(0)
        distances = np.linalg.norm(mean - (total + features) / (len(chosen) + 1), axis=1)
        distances[chosen] = np.inf
        chosen.append(int(distances.argmin()))
    return chosen


def plain_k_center(features: np.ndarray, count: int) -> list[int]:
    """At every pick, the distances of all candidates to all centres."""
    norms = (features**2).sum(1)
    chosen = [int(norms.argmin())]
    while len(chosen) < count:
        squares = norms[:, None] + norms[chosen] - 2 * features @ features[chosen].T
        nearest = squares.min(1)
        nearest[chosen] = -np.inf
        chosen.append(int(nearest.argmax()))
    return chosen


def some_pairs(pairs: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of images and of one caption each. Shapes: (M, d), (M, d)"""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((pairs, dim), np.float32)
    return images, rng.standard_normal((pairs, dim), np.float32)


def joint(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Both sides of every pair, each centred and scaled to a mean squared norm of 1."""
    sides = [side - side.mean(0) for side in (images, texts)]
    return np.concatenate([side / np.sqrt((side**2).sum(1).mean()) for side in sides], 1)


def ratios(rounds: int, pairs: int = 10_000, dim: int = 256, picks: int = 200) -> list[Ratio]:
    """Choosing some of many pairs; ours and the reference choose the same ones."""
    images, texts = some_pairs(pairs, dim)

    def line(name: str, ours: Select, plain: Callable[[np.ndarray, int], list[int]]) -> Ratio:
        return side_by_side(
            f"{name}: {picks} of {pairs:,} pairs, {2 * dim} features",
            lambda: ours(Candidates(images, texts, np.arange(pairs)), picks),
            lambda: plain(joint(images, texts), picks),
            rounds,
        )

    return [line("herding", herding, plain_herding), line("k-center", k_center, plain_k_center)]
