"""Published sets as synthetic pairs, and back: the same numbers, arranged as the other side wants.

S = diag(ω) + (α/r) L Rᵀ, and α/r is not in a published file: it is found by comparing L Rᵀ with the
S that the file also holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lors.config import SimilarityConfig
from lors.encoders.image import CLIP_PIXELS
from lors.files.published import PublishedSet
from lors.losses import LOSSES
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank, build_similarity
from lors.system.errors import InputError

__all__ = ["PUBLISHED", "found_alpha", "published", "published_loss", "unpublished"]

HALVED = ("nce", "ence", "wbce")
"""The losses that are half as large in the published code."""

PUBLISHED = "-published"
"""How the names of losses end that are scaled as in the published code."""

CLOSE, ROUND = 1e-3, 1e-4
"""How far S may be from its factors, and α from a round number, relative to their size: networks on
GPUs multiply matrices with as few as ten bits."""


def published_loss(loss: str, kind: str = "lowrank") -> str:
    """The published code's reading of a loss; with a learned S, its InfoNCE is the extended one.

    >>> published_loss("wbce"), published_loss("nce"), published_loss("nce", "identity")
    ('wbce-published', 'ence-published', 'nce-published')
    """
    name = loss.removesuffix(PUBLISHED)
    if name == "nce" and kind != "identity":
        name = "ence"
    return f"{name}{PUBLISHED}" if f"{name}{PUBLISHED}" in LOSSES else loss


def unpublished(
    files: Sequence[PublishedSet], alpha: float | None = None
) -> tuple[SyntheticPairs, SimilarityConfig]:
    """The pairs of a published set, and what its similarity is.

    Several files are subsets of one set: the similarity between them is 0, and the rates are those
    of the last.

    Args:
        files: one set, or its subsets in their order.
        alpha: α, where it cannot be found.

    Raises:
        InputError: α is not known or does not fit, S does not fit its factors, or subsets are of
            different sizes or given twice.
    """
    first = files[0]
    for other in files[1:]:
        if (first.images.shape[1:], first.texts.shape[1:]) != (
            other.images.shape[1:],
            other.texts.shape[1:],
        ):
            raise InputError("these files are not subsets of one set: their pairs have other sizes")
    for number, each in enumerate(files):
        if any(torch.equal(each.images, other.images) for other in files[:number]):
            raise InputError("two of these files hold the same images: give each subset once")
    images = torch.cat([each.images for each in files])
    texts = torch.cat([each.texts for each in files]).to(images.dtype)
    if len(files) == 1 and len(first.factors) == 3:
        config = SimilarityConfig(
            kind="lowrank", rank=first.factors[1].shape[1], alpha=found_alpha(first, alpha)
        )
        parts = dict(zip(("omega", "left", "right"), first.factors, strict=True))
    elif len(files) == 1 and not first.factors and first.matrix is None:
        config, parts = SimilarityConfig(kind="identity"), {}
    else:
        config = SimilarityConfig(kind="full")
        parts = {"values": torch.block_diag(*(_matrix(each, alpha) for each in files))}
    rank = config.rank
    if config.kind == "lowrank" and rank > len(images):
        raise InputError(f"a similarity of rank {rank} is larger than one of {len(images)} pairs")
    similarity = build_similarity(config, len(images)).to(images.dtype)
    similarity.load_state_dict(parts)
    return SyntheticPairs(images, texts, similarity, files[-1].rates.tolist()), config


def _matrix(content: PublishedSet, alpha: float | None) -> Tensor:
    """S of a subset, as the file has it."""
    if len(content.factors) == 3:
        alpha = found_alpha(content, alpha)
        return _product(content.factors, alpha) if content.matrix is None else content.matrix
    if content.factors:
        (values,) = content.factors
        if content.matrix is not None and not _close(content.matrix, values):
            raise InputError("similarity_mat is not the S of similarity_params")
        return values
    return torch.eye(len(content.images)) if content.matrix is None else content.matrix


def found_alpha(content: PublishedSet, given: float | None = None) -> float:
    """α of S = diag(ω) + (α/r) L Rᵀ, by least squares; round numbers are taken to be meant.

    Args:
        content: a published set with ω, L and R.
        given: what it should be, if it is known.

    Raises:
        InputError: R = 0, or there is no S to compare with, and none is given; or it does not fit.
    """
    omega, left, right = (part.double() for part in content.factors)
    rank, product = left.shape[1], left @ right.T
    if content.matrix is None or not product.any():
        if given is None:
            why = "it has no similarity_mat" if content.matrix is None else "R = 0"
            raise InputError(
                f"α of S = diag(ω) + (α/r) L Rᵀ cannot be found in this file, as {why}: which α "
                f"was the set made with? Its launch script says; r is {rank}: give --alpha"
            )
        return given
    rest = content.matrix.double() - torch.diag(omega)
    apart = ~torch.eye(len(omega), dtype=torch.bool) if len(omega) > 1 else torch.tensor([[True]])
    known = product * apart
    if not known.any():
        known = product
    scale = float((known * rest).sum() / known.square().sum())
    whole = torch.diag(omega) + scale * product
    if not (_close(rest * (known != 0), scale * known) and _close(content.matrix.double(), whole)):
        raise InputError("similarity_mat is not diag(ω) + (α/r) L Rᵀ of similarity_params")
    alpha = scale * rank
    if given is not None:
        if abs(given - alpha) > CLOSE * abs(alpha):
            raise InputError(f"the file was made with an α of {alpha:.6g}, not {given:g}")
        return given
    rounded = float(f"{alpha:.3g}")
    return rounded if abs(rounded - alpha) <= ROUND * abs(alpha) else alpha


def _close(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).norm() <= CLOSE * torch.maximum(one.norm(), other.norm()))


def _product(factors: Sequence[Tensor], alpha: float) -> Tensor:
    """S in the order of the published code, which decides its last bits."""
    omega, left, right = factors
    return torch.diag(omega) + left @ right.T * alpha / left.shape[1]


def published(distilled: DistilledSet) -> PublishedSet:
    """A set as the published scripts take it.

    They feed images to the trunk as they are, so these are normalised by CLIP's mean and deviation.
    Their losses are half of the paper's: a set made for the paper's gets twice its rates.

    Raises:
        InputError: the set is of features, its text trunk trains along, or it was made for a loss
            that the published code does not have in another scale.
    """
    encoder = distilled.config.encoder
    if encoder.space == "features" or encoder.scope == "all":
        raise InputError(
            "the published format holds pixels and embeddings of captions: a set in space features "
            "or scope all has others"
        )
    images, texts = distilled.images.cpu(), distilled.texts.cpu()
    theirs = CLIP_PIXELS["mean"], CLIP_PIXELS["std"]
    if (distilled.mean, distilled.std) != theirs:
        values = (distilled.mean, distilled.std, *theirs)
        mean, std, new_mean, new_std = (images.new_tensor(v).view(-1, 1, 1) for v in values)
        images = (images * std + mean - new_mean) / new_std
    rates = distilled.pairs.rates.detach().cpu()
    if not distilled.config.loss.endswith(PUBLISHED):
        if distilled.config.loss not in HALVED:
            raise InputError(
                f"the published code has no loss like {distilled.config.loss!r}, or not in a scale "
                "that is known: the rates of this set mean nothing there"
            )
        rates = 2 * rates
    similarity = distilled.pairs.similarity
    if isinstance(similarity, LowRank):
        parts = (similarity.omega, similarity.left, similarity.right)
        factors = tuple(part.detach().cpu().clone() for part in parts)
        alpha = distilled.config.similarity_within(distilled.pairs.pair_numbers()).alpha
        matrix = _product(factors, alpha)
    else:
        matrix = similarity.matrix().detach().cpu()
        factors = (matrix.clone(),)
    return PublishedSet(images.contiguous(), texts.contiguous(), factors, matrix, rates)
