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

    Raises:
        InputError: it is none of these, or its parts do not fit.
    """
    if texts is not None:
        if _holds_words(texts):
            return Pairs.images(data, texts, val=val, test=test)
        return Pairs.arrays(data, texts, owner, captions, val=val, test=test)
    if isinstance(data, Pairs):
        return data
    if isinstance(data, (str, Path)):
        return Pairs.folder(data)
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and not isinstance(data[0], tuple):
        return as_pairs(
            data[0], data[1], owner=data[2] if len(data) > 2 else owner, val=val, test=test
        )
    if hasattr(data, "column_names"):
        return Pairs.huggingface(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return Pairs.dataset(data, val, test, progress)
    raise InputError(
        f"a {type(data).__name__} is no dataset: give two arrays, a folder, lors.Pairs, a list of "
        "images and one of captions, or a dataset of (image, caption)"
    )


def _holds_words(texts: Any) -> bool:
    """Whether texts are captions, one or several for each image, rather than numbers."""
    first = texts[0] if isinstance(texts, (list, tuple)) and len(texts) else None
    return isinstance(first, str) or (
        isinstance(first, (list, tuple)) and len(first) > 0 and isinstance(first[0], str)
    )
