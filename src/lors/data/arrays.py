"""Embeddings that are in memory: two arrays and, if wanted, their words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lors.config import DataConfig
from lors.data.captions import Words
from lors.data.embeddings import GivenEmbeddings, given_split
from lors.data.pairs import Decoded
from lors.data.problems import IN_MEMORY, collecting
from lors.data.rows import check_rows, kept_rows, text_counts, unmatched
from lors.data.shards import Shard, ShardedRows
from lors.data.splitting import split_indices
from lors.files.cache import fingerprint
from lors.system.errors import InputError
from lors.system.progress import Silent

__all__ = ["as_array", "decoded_arrays", "given_arrays"]


def as_array(values: Any, what: str) -> np.ndarray:
    """Numbers as a NumPy array, without copying where that is possible.

    Args:
        values: a NumPy array, a memory map, a torch tensor, or nested lists.
        what: says in messages what they are.

    Raises:
        InputError: they are no array of floating-point numbers.
    """
    if hasattr(values, "detach"):  # a tensor; torch need not be imported to know one
        tensor = values.detach().cpu()
        values = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    try:
        array = values if isinstance(values, np.ndarray) else np.asarray(values)
    except ValueError:
        raise InputError(f"{what} are rows of different lengths: give an array") from None
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(
            f"{what} are of type {array.dtype}: give embeddings, as floating-point numbers"
        )
    return array


def given_arrays(
    images: Any,
    texts: Any,
    owner: Any = None,
    captions: Sequence[str] = (),
    what: str = "",
    skip_bad: bool = False,
) -> GivenEmbeddings:
    """Two arrays as one split, checked.

    Args:
        images: Shape: (M, f)
        texts: Shape: (M, d); (M, captions, d); or (C, d) with
        owner: the image of each text, ascending. Shape: (C,)
        captions: the words of the texts, if they are known. Length: C
        what: begins the names of the arrays in messages, as in ``"test "``.
        skip_bad: leave out rows that are not finite, instead of refusing the arrays.

    Raises:
        InputError: the shapes do not belong together, or a number is not finite.
    """
    image, text = as_array(images, f"{what}images"), as_array(texts, f"{what}texts")
    if image.ndim != 2 or text.ndim not in (2, 3) or 0 in (*image.shape, *text.shape):
        raise InputError(
            f"{what}images of shape {image.shape} and {what}texts of shape {text.shape} are no "
            "pairs: give (M, f) and (M, d), or (M, captions, d) for several captions each"
        )
    if owner is None and (sentence := unmatched(image.shape, text.shape, "owner", what)):
        raise InputError(sentence)
    config = DataConfig(source="arrays", skip_bad=skip_bad)
    with collecting(config, Silent(), IN_MEMORY) as problems:
        counts = text_counts(owner, image, text, f"{what}owner", problems)
        shards = Shard.of(image), Shard.of(text)
        looked = [
            check_rows(shard, f"{what}{name}", problems)
            for name, shard in zip(("images", "texts"), shards, strict=True)
        ]
        whole = not problems.found
        problems.settle(len(image) + shards[1].count, "embeddings")
    if captions and len(captions) != counts.sum():
        raise InputError(f"there are {len(captions)} captions for {counts.sum()} {what}texts")
    words = Words(captions) if captions else None
    sides = ShardedRows(shards[:1]), ShardedRows(shards[1:])
    if whole:
        return GivenEmbeddings(*sides, counts, words)
    rows, texts_left, counts = kept_rows(counts, *(each.bad for each in looked))
    if not len(rows):
        raise InputError(f"none of the {what}images and texts can be used: all have problems")
    words = None if words is None else words.of(texts_left)
    return GivenEmbeddings(sides[0].of(rows), sides[1].of(texts_left), counts, words)


def decoded_arrays(given: Mapping[str, GivenEmbeddings], config: DataConfig) -> Decoded:
    """The splits of given arrays; those that are not given are held out from train."""
    for side in ("images", "texts"):
        widths = {split: getattr(each, side).shape[1] for split, each in given.items()}
        if len(set(widths.values())) > 1:
            raise InputError(f"the {side} of the splits have rows of different lengths: {widths}")
    chosen = split_indices({split: len(each.images) for split, each in given.items()}, config)
    content = fingerprint(*(f"{split} {_digest(each)}" for split, each in given.items()))
    return Decoded(
        fingerprint(content, repr(config.holdout), repr(config.seed), repr(config.pairs)),
        {
            name: given_split(given[split], rows, fingerprint(name, content))
            for name, (split, rows) in chosen.items()
        },
    )


def _digest(given: GivenEmbeddings) -> str:
    """Of all numbers: equal arrays share caches and experts, however they came."""
    seen = hashlib.blake2b(given.counts.tobytes(), digest_size=16)
    for side in (given.images, given.texts):
        seen.update(repr(side.shape).encode())
        for start in range(0, len(side), 4096):
            seen.update(side[start : start + 4096].tobytes())
    return seen.hexdigest()
