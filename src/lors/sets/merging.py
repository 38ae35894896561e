"""Merging sets: their pairs together, each set's similarity along the diagonal of one S."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from lors.encoders import Standard
from lors.encoders.given_text import GivenText
from lors.sets.distilled import DistilledSet
from lors.sets.parts import joined_similarity
from lors.sets.synthetic import SyntheticPairs
from lors.system.errors import InputError

__all__ = ["merge"]

PLACES = {"image_weights", "text"}
"""Settings of an encoder that say where it lies: what it is is compared by its content."""


def merge(sets: Sequence[DistilledSet | str | Path], budget: int | None = None) -> DistilledSet:
    """One set of the pairs of several, which may come from different data.

    S is 0 between the sets. The learning rates are the geometric means of theirs, weighted by
    pairs. Where they standardise features differently, the merged set has the mean and deviation of
    all together, and its numbers are converted. Everything else, such as the protocol and the data
    that ``lors.evaluate`` measures on, is the first set's.

    >>> both = merge([small, small])
    >>> len(both) == 2 * len(small), both.similarity[0, len(small)].item()
    (True, 0.0)
    >>> torch.allclose(both.images[: len(small)], small.images, atol=1e-5)
    True

    Args:
        sets: two or more sets, or their files or run directories.
        budget: the storage that the merged set may take, in plain pairs; default: that of all.

    Raises:
        InputError: they were made with different encoders or losses, or do not fit the budget.
    """
    parts = [each if isinstance(each, DistilledSet) else _read(Path(each)) for each in sets]
    if len(parts) < 2:
        raise InputError(f"merging takes two or more sets, not {len(parts)}")
    for number, other in enumerate(parts[1:], 2):
        _check_alike(parts[0], other, number)
    parts = [each.to("cpu") for each in parts]
    first, sizes = parts[0], torch.tensor([len(each) for each in parts], dtype=torch.float64)
    image_standard = _standard([each.image_standard for each in parts], sizes)
    text_standard = _standard([each.text_standard for each in parts], sizes)
    similarity, kind = joined_similarity([each.pairs.similarity for each in parts])
    images = [each.pairs.images.detach() for each in parts]
    if first.config.encoder.space == "features":
        images = _converted(images, [each.image_standard for each in parts], image_standard)
    texts = [each.pairs.texts.detach() for each in parts]
    texts = _converted(texts, [each.text_standard for each in parts], text_standard)
    rates = _rates(parts, sizes)
    pairs = SyntheticPairs(torch.cat(images), torch.cat(texts), similarity, rates)
    config = first.config
    if len({each.config.selection.kind for each in parts}) > 1:  # selected ones among learned ones
        config = config.model_copy(
            update={"selection": config.selection.model_copy(update={"kind": None})}
        )
    budget = _checked_budget(pairs, parts, budget)
    changes = {
        "description": f"{len(parts)} sets merged",
        "similarity": kind,
        "distill": config.distill.model_copy(update={"budget": budget}),
    }
    captions = [each.captions for each in parts]
    return replace(
        first,
        pairs=pairs,
        config=config.model_copy(update=changes),
        captions=sum(captions, ()) if all(captions) else (),
        imported="",
        image_standard=image_standard,
        text_standard=text_standard,
    )


def _read(path: Path) -> DistilledSet:
    return DistilledSet.load(path / "distilled.safetensors" if path.is_dir() else path)


def _check_alike(first: DistilledSet, other: DistilledSet, number: int) -> None:
    """Refuse a set whose numbers mean something else than those of the first."""
    ours, theirs = (each.config.encoder.model_dump(exclude=PLACES) for each in (first, other))
    differ = [f"encoder.{name}" for name in ours if ours[name] != theirs[name]]
    differ += ["the loss"] * (first.config.loss != other.config.loss)
    differ += ["dtype"] * (first.config.dtype != other.config.dtype)
    differ += ["the image trunk"] * (first.image_trunk != other.image_trunk)
    if not all(isinstance(each.text_trunk, GivenText) for each in (first, other)):
        # One that is fitted was fitted on other captions.
        differ += ["the text trunk"] * (
            first.text_trunk.fingerprint != other.text_trunk.fingerprint
        )
    elif first.text_trunk.dim != other.text_trunk.dim:
        differ += ["the size of a text"]
    differ += ["the pixels' mean"] * ((first.mean, first.std) != (other.mean, other.std))
    differ += ["the size of a pair"] * (first.pairs.pair_numbers() != other.pairs.pair_numbers())
    if differ:
        raise InputError(
            f"set {number} cannot be merged with set 1, as they differ in {', '.join(differ)}: "
            "merge sets that were made with the same encoders and loss"
        )


def _standard(standards: Sequence[Standard | None], sizes: Tensor) -> Standard | None:
    """The mean and deviation of all data, of which each part has its own, weighted by pairs."""
    known = [each for each in standards if each is not None]
    if len(known) < len(standards):
        return None
    if all(
        torch.equal(each.mean, known[0].mean) and each.scale == known[0].scale for each in known
    ):
        return known[0]
    weights = sizes / sizes.sum()
    means = torch.stack([each.mean.double() for each in known])
    mean = weights @ means
    within = torch.stack([each.scale.double().square() for each in known])
    variance = weights @ (within + (means - mean).square().mean(1))
    kept = known[0].mean.dtype
    return Standard(mean.to(kept), variance.sqrt().to(kept))


def _converted(
    parts: Sequence[Tensor], standards: Sequence[Standard | None], whole: Standard | None
) -> list[Tensor]:
    """Standardised numbers of each part as the standardisation of the whole would have them."""
    return [
        part if whole is None or own is None or own is whole else whole(own.inverse(part))
        for part, own in zip(parts, standards, strict=True)
    ]


def _rates(parts: Sequence[DistilledSet], sizes: Tensor) -> list[float]:
    """The geometric mean of each side's rates, weighted by pairs."""
    logs = torch.stack([each.pairs.rates.detach().double().log() for each in parts])
    return (sizes @ logs / sizes.sum()).exp().tolist()


def _checked_budget(
    pairs: SyntheticPairs, parts: Sequence[DistilledSet], budget: int | None
) -> int:
    allowed = budget or sum(each.config.distill.budget for each in parts)
    if pairs.storage() > allowed:
        raise InputError(
            f"merged, these sets hold as many numbers as {pairs.storage():.2f} plain pairs, more "
            f"than the budget of {allowed}: give a budget of {math.ceil(pairs.storage())}"
        )
    return allowed
