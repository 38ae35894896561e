"""Heads in closed form: what a linear map reaches that is stored in the place of a set.

A set of N pairs of features has N(f + d) numbers. So have two linear heads into a joint space of N
dimensions. They need no training set and no training, so they are the reference of every set of
features: who ships 100 pairs could ship these.

With covariances of real pairs, regularised by γ, there are three kinds, each cut off at rank k:

    CCA      C_xx^-½ C_xy C_yy^-½ = P σ Qᵀ     A = C_xx^-½ P σ^½    B = C_yy^-½ Q σ^½
    ridge    C_xx⁻¹ C_xy = P σ Qᵀ              A = P σ              B = Q

and ridge regression of images on texts, which is the second with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.data.shards import BLOCK
from lors.encoders.encoded import EncodedSplit, mean_captions
from lors.evaluation.recall import Recall, recall
from lors.setting import Setting

__all__ = ["Heads", "Moments", "closed_form_heads", "fitted_heads", "head_recall", "real_moments"]

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""γ that are tried on val, in mean variances of a feature of the side."""
KINDS = ("CCA", "ridge, images to texts", "ridge, texts to images")


class Heads(NamedTuple):
    """Two linear heads into one space.

    Args:
        image: A. Shape: (f, k)
        text: B. Shape: (d, k)
        means: of image features and of captions, which are subtracted. Shapes: (f,), (d,)
        about: which kind it is.
    """

    image: Tensor
    text: Tensor
    means: tuple[Tensor, Tensor]
    about: str = ""

    def storage(self) -> float:
        """In plain pairs: the columns, and the means as one pair."""
        return self.image.shape[1] + 1.0


class Moments(NamedTuple):
    """What is known of M pairs.

    Args:
        means: of image features x and text features y. Shapes: (f,), (d,)
        image: eigenvalues and eigenvectors of C_xx. Shapes: (f,), (f, f)
        text: of C_yy. Shapes: (d,), (d, d)
        common: C_xy. Shape: (f, d)
    """

    means: tuple[Tensor, Tensor]
    image: tuple[Tensor, Tensor]
    text: tuple[Tensor, Tensor]
    common: Tensor

    @classmethod
    def of(cls, blocks: Iterable[tuple[Tensor, Tensor]]) -> Moments:
        """Of pairs of features, some at a time. Shapes of each: (m, f), (m, d)"""
        count, sums, products = 0, torch.zeros(()), torch.zeros(())
        for x, y in blocks:
            both = torch.cat([x, y], 1).double()
            count, sums, products = count + len(x), sums + both.sum(0), products + both.T @ both
            width = x.shape[1]
        mean = sums / count
        covariance = products / count - mean.outer(mean)
        image, text = (
            torch.linalg.eigh(covariance[side, side]) for side in (slice(width), slice(width, None))
        )
        means = mean[:width], mean[width:]
        common = covariance[:width, width:]
        return cls(means, (image[0], image[1]), (text[0], text[1]), common)


def fitted_heads(moments: Moments, rank: int, ridge: float, kind: str) -> Heads:
    """The heads of some pairs.

    >>> x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double()
    >>> heads = fitted_heads(Moments.of([(x, x[:, :3])]), 2, 0.1, "CCA")
    >>> heads.image.shape, heads.text.shape, heads.storage()
    (torch.Size([4, 2]), torch.Size([3, 2]), 3.0)

    Args:
        moments: of the pairs.
        rank: k, at most; there are no more than f and d allow.
        ridge: γ, in mean variances of a feature of the side.
        kind: one of ``KINDS``.
    """
    common = moments.common
    if kind == "CCA":
        white = [_power(side, ridge, -0.5) for side in (moments.image, moments.text)]
        p, sigma, q = _cut(white[0] @ common @ white[1], rank)
        image, text = white[0] @ p * sigma.sqrt(), white[1] @ q * sigma.sqrt()
    elif kind == KINDS[1]:
        p, sigma, text = _cut(_power(moments.image, ridge, -1) @ common, rank)
        image = p * sigma
    else:
        p, sigma, image = _cut(_power(moments.text, ridge, -1) @ common.T, rank)
        text = p * sigma
    return Heads(image, text, moments.means, f"{kind}, rank {len(sigma)}, γ {ridge:g}")


def _cut(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """P, σ and Q of the first singular values. Shapes: (f, k), (k,), (d, k)"""
    p, sigma, q = torch.linalg.svd(matrix, full_matrices=False)
    return p[:, :rank], sigma[:rank], q[:rank].T


def _power(covariance: tuple[Tensor, Tensor], ridge: float, power: float) -> Tensor:
    """(C + γI)^power of a covariance C by its eigenvalues and eigenvectors. Shape: (f, f)"""
    values, vectors = covariance
    regular = values.clamp(min=0) + ridge * values.mean()
    return vectors * regular.pow(power) @ vectors.T


def head_recall(heads: Heads, split: EncodedSplit) -> Recall:
    """What cosines of the two heads retrieve."""
    sides = (split.images, split.texts), (heads.image, heads.text), heads.means
    u, v = (
        F.normalize((torch.from_numpy(np.array(rows[:])).double() - mean) @ head, dim=1).float()
        for rows, head, mean in zip(*sides, strict=True)
    )
    return recall(u, v, torch.from_numpy(split.owner))


def real_moments(setting: Setting) -> Moments:
    """Of the training pairs. Each image counts with the mean of its captions."""
    return Moments.of(_blocks(setting.real["train"]))


def closed_form_heads(
    setting: Setting, budget: int, moments: Moments | None = None
) -> tuple[Heads, Recall]:
    """The heads that are best on val among those of a storage, and their test recall.

    Args:
        setting: of frozen trunks.
        budget: storage in plain pairs of features; one pays for the means.
        moments: what ``real_moments`` gives, if it is known.

    Returns:
        The heads, and what they reach on the test split.
    """
    moments, rank = moments or real_moments(setting), max(1, budget - 1)
    tried = [fitted_heads(moments, rank, ridge, kind) for kind in KINDS for ridge in RIDGES]
    best = max(tried, key=lambda heads: head_recall(heads, setting.real["val"]).mean)
    return best, head_recall(best, setting.real["test"])


def _blocks(real: EncodedSplit) -> Iterator[tuple[Tensor, Tensor]]:
    """Images with the mean of their captions, some at a time."""
    for images in np.array_split(np.arange(len(real)), -(-len(real) // BLOCK)):
        captions = slice(*np.searchsorted(real.owner, [images[0], images[-1] + 1]))
        texts = mean_captions(np.array(real.texts[captions]), real.owner[captions])
        x = np.array(real.images[images[0] : images[-1] + 1])
        yield torch.from_numpy(x), torch.from_numpy(texts)
