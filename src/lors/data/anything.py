"""Whatever a caller has, as real pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lors.data.dataset import Pairs
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["as_pairs"]


def as_pairs(
    data: Any,
    texts: Any = None,
    *,
    owner: Any = None,
    captions: Sequence[str] = (),
    val: Any = None,
    test: Any = None,
    progress: Progress | None = None,
    skip_bad: bool = False,
) -> Pairs:
    """Real pairs from the usual things.

    >>> import numpy as np
    >>> as_pairs(np.eye(9, 3), np.eye(9, 4))
    Pairs(arrays: 9 train)
    >>> as_pairs("photos")
    Pairs(table: photos)

    Args:
        data: pairs; a folder; two arrays, with ``texts``; a list of images, with a list of captions
            as ``texts``; a Hugging Face dataset; or a dataset of (image, caption).
        texts: embeddings, or captions.
        owner: of flat embeddings of several captions, the image of each.
        captions: the words of embeddings.
        val: a validation split of the same kind, as a tuple where ``data`` and ``texts`` are two.
        test: a test split likewise.
        progress: reports long-running work.
        skip_bad: leave out what is in memory and cannot be used, instead of refusing it.

    Raises:
        InputError: it is none of these, or its parts do not fit.
    """
    if texts is not None:
        if _holds_words(texts):
            _refuse("images and captions", owner=owner, captions=captions)
            return Pairs.images(data, texts, val=val, test=test, skip_bad=skip_bad)
        return Pairs.arrays(data, texts, owner, captions, val, test, skip_bad)
    if _is_parts(data):
        owner = data[2] if len(data) > 2 else owner
        return as_pairs(
            data[0],
            data[1],
            owner=owner,
            captions=captions,
            val=val,
            test=test,
            skip_bad=skip_bad,
        )
    _refuse(f"a {type(data).__name__}", owner=owner, captions=captions)
    if isinstance(data, (Pairs, str, Path)):
        _refuse("pairs that have their splits already", val=val, test=test)
        return data if isinstance(data, Pairs) else Pairs.folder(data)
    if hasattr(data, "column_names"):
        return _with_splits(
            Pairs.huggingface(data, skip_bad=skip_bad), skip_bad, val=val, test=test
        )
    if hasattr(data, "ndim") or hasattr(data, "detach"):
        raise InputError("an array alone holds no pairs: give the texts, or the captions, too")
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "keys"):
        return Pairs.dataset(data, val, test, progress, skip_bad)
    raise InputError(
        f"data of the type {type(data).__name__} cannot be used: give two arrays, a folder, "
        "lors.Pairs, a list of images and one of captions, or a dataset of (image, caption) with a "
        "length"
    )


def _with_splits(made: Pairs, skip_bad: bool, **splits: Any) -> Pairs:
    """Pairs in memory with splits that were given beside them."""
    given, skipped = dict(made.given or {}), list(made.left_out)
    for name, split in splits.items():
        if split is not None:
            other = as_pairs(split, skip_bad=skip_bad)
            given[name] = other.only_split()
            skipped += other.left_out
    return Pairs(made.settings, given, skipped)


def _is_parts(data: Any) -> bool:
    """Whether data is (images, texts) or (images, texts, owner), and no list of pairs."""
    return (
        isinstance(data, (tuple, list))
        and len(data) in (2, 3)
        and not isinstance(data[0], (tuple, dict))
    )


def _refuse(what: str, **given: Any) -> None:
    """Refuse arguments that would have no effect."""
    for name, value in given.items():
        if value is not None and not (hasattr(value, "__len__") and len(value) == 0):
            raise InputError(f"{name} cannot be given with {what}")


def _holds_words(texts: Any) -> bool:
    """Whether texts are captions, one or several for each image, rather than numbers."""
    if getattr(getattr(texts, "dtype", None), "kind", "") in ("U", "O", "T"):
        texts = list(texts)
    first = texts[0] if isinstance(texts, (list, tuple)) and len(texts) else None
    return isinstance(first, str) or (
        isinstance(first, (list, tuple)) and len(first) > 0 and isinstance(first[0], str)
    )
