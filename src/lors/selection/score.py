"""Scores: pairs whose image and caption fit best."""

from __future__ import annotations

import numpy as np

from lors.data.shards import Features
from lors.selection.candidates import CHUNK, check_count, pair_rows
from lors.selection.pool import Choice, Pool
from lors.selection.span import Span
from lors.system import ranks
from lors.system.errors import InputError

__all__ = ["best_fitting", "by_score", "highest", "pair_scores"]


def best_fitting(
    images: Features, texts: Features, captions: np.ndarray, count: int, chunk: int = CHUNK
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs whose image and caption fit best, highest first; see ``pair_scores``.

    Returns:
        The picks in order, and the score of each. Shapes: (n,), (n,)
    """
    check_count(count, len(images))
    scores = pair_scores(images, texts, captions, chunk)
    span = Span(len(images), chunk)
    own: list[list[float]] = [[], []]
    if len(span):
        picks, best = highest(scores, min(count, len(span)))
        own = [(span.start + picks).tolist(), best.tolist()]
    # Of equal scores, those of lower ranks come first, as they would among all.
    pairs, found = (np.concatenate(parts) for parts in zip(*ranks.gather(own), strict=True))
    chosen, best = highest(found, count)
    return pairs[chosen].astype(np.int64), best


def highest(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of highest score, highest first; of equal ones, the first.

    >>> picks, scores = highest(np.array([0.2, 0.7, 0.1, 0.7]), 3)
    >>> picks.tolist(), scores.tolist()
    ([1, 3, 0], [0.7, 0.7, 0.2])

    Args:
        scores: one for each pair. Shape: (M,)
        count: n, how many to choose.

    Returns:
        The picks in order, and the score of each. Shapes: (n,), (n,)

    Raises:
        InputError: a score is not finite, or ``count`` is not between 1 and M.
    """
    check_count(count, len(scores))
    scores = scores.astype(np.float64)
    finite = np.isfinite(scores)
    if not finite.all():
        broken = finite.argmin()
        raise InputError(
            f"the score of pair {broken} is {scores[broken]}; pairs are ranked by finite numbers"
        )
    picks = np.argsort(-scores, kind="stable")[:count]
    return picks, scores[picks]


def pair_scores(
    images: Features, texts: Features, captions: np.ndarray, chunk: int = CHUNK
) -> np.ndarray:
    """How well each image fits its caption: the cosine of their embeddings.

    With CLIP's embeddings this is the CLIP score by which web-scale datasets are filtered. An
    embedding of zeros fits nothing: 0.

    Papers: https://arxiv.org/abs/2104.08718 (CLIPScore, Hessel et al. 2021),
    https://arxiv.org/abs/2304.14108 (DataComp, Gadre et al. 2023)

    Args:
        images: image embeddings, in memory or in files. Shape: (M, e)
        texts: caption embeddings, in memory or in files. Shape: (C, e)
        captions: the row of ``texts`` that belongs to each image. Shape: (M,)
        chunk: pairs read at a time.

    Returns:
        Of the pairs of this rank's span. Shape: (span,)

    Raises:
        InputError: the shapes do not fit, or a number is not finite.
    """
    u, v = pair_rows(images, texts, captions, chunk)
    if u.width != v.width:
        raise InputError(
            f"image embeddings have {u.width} numbers and text embeddings {v.width}: "
            "both must come from one joint space"
        )
    scores = np.empty(len(u.span))
    for (pairs, image), (_, text) in zip(u.checked_chunks(), v.checked_chunks(), strict=True):
        x, y = image.numpy().astype(np.float64), text.numpy().astype(np.float64)
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        cosines = np.einsum("ij,ij->i", x, y) / np.where(lengths > 0, lengths, 1)
        scores[u.span.here(pairs)] = cosines.clip(-1, 1)
    return scores


def by_score(pool: Pool, count: int) -> Choice:
    """The selection ``clip-score``."""
    return best_fitting(*pool.embeddings(), count)
