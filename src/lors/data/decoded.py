"""Decoded images: every one is decoded once, into a memory-mapped uint8 array of the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from lors.data.bad_row import BadRowError
from lors.data.pairs import Item
from lors.files.arrays import write_blocks
from lors.files.artifacts import home
from lors.files.cache import fingerprint, made_once, read_cached
from lors.system.errors import InputError
from lors.system.progress import Progress
from lors.system.threads import threaded

__all__ = ["UnreadableError", "cached_images", "item_pixels", "pixels_or_error"]


class UnreadableError(InputError):
    """Images cannot be decoded.

    Args:
        message: about the first of them.
        found: what is wrong, by the place of the item.
    """

    def __init__(self, message: str, found: Mapping[int, BadRowError] | None = None) -> None:
        super().__init__(message)
        self.found = dict(found or {})


def cached_images(items: Sequence[Item], size: int, progress: Progress) -> np.ndarray:
    """The images of the items, resized to size x size. Shape: (M, 3, size, size), uint8.

    The array is memory-mapped from a file that is named by the content and the size, and written
    on first use.

    Raises:
        UnreadableError: some cannot be decoded. All were tried, and nothing is written.
    """
    path = home() / "images" / f"{fingerprint(str(size), *(item.key for item in items))}.npy"
    shape = (len(items), 3, size, size)
    made_once(path, lambda: _decode(items, size, path, shape, progress), progress)
    array = read_cached(path)
    if array.shape != shape or array.dtype != np.uint8:
        raise InputError(f"the cache {str(path)!r} is damaged: delete it, and it is made again")
    return array


def item_pixels(item: Item, size: int) -> np.ndarray:
    """The image of an item, resized. Shape: (3, size, size), uint8"""
    image = item.load().convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image).transpose(2, 0, 1)


def _decode(
    items: Sequence[Item], size: int, path: Path, shape: tuple[int, ...], progress: Progress
) -> None:
    images = threaded(partial(pixels_or_error, size=size), items)
    tracked = progress.track(images, "decode images", len(items))
    write_blocks(path, shape, np.dtype(np.uint8), _all_pixels(tracked, shape[1:]))


def pixels_or_error(item: Item, size: int) -> np.ndarray | BadRowError:
    """The image of an item as ``item_pixels`` gives it, or why it cannot be decoded."""
    try:
        return item_pixels(item, size)
    except BadRowError as error:
        return error.with_traceback(None)


def _all_pixels(
    images: Iterable[np.ndarray | BadRowError], shape: tuple[int, ...]
) -> Iterator[np.ndarray]:
    """The images; after the last one, an error about those that cannot be decoded."""
    bad: dict[int, BadRowError] = {}
    for place, image in enumerate(images):
        if isinstance(image, BadRowError):
            bad[place] = image
        yield np.zeros(shape, np.uint8) if isinstance(image, BadRowError) else image
    if bad:
        raise UnreadableError(str(next(iter(bad.values()))), bad)
