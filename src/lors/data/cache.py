"""The array cache: every image is decoded once, into a memory-mapped uint8 array."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from lors.artifacts import home, writing
from lors.data.arrays import read_array
from lors.data.pairs import Item
from lors.errors import InputError
from lors.locks import locked
from lors.progress import Progress

__all__ = ["cached_array", "cached_images", "fingerprint", "item_pixels"]


def fingerprint(*parts: str) -> str:
    """A short name for any content."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")  # file names may hold any
    return digest.hexdigest()[:16]


def cached_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array in a file, memory-mapped; made and written if the file is not there."""

    def write() -> None:
        array = make()
        with writing(path) as temporary, temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)

    _once(path, write)
    return _read(path)


def cached_images(items: Sequence[Item], size: int, progress: Progress) -> np.ndarray:
    """The images of the items, resized to size x size. Shape: (M, 3, size, size), uint8.

    The array is memory-mapped from a file that is named by the content and the size, and written
    on first use.
    """
    path = home() / "images" / f"{fingerprint(str(size), *(item.key for item in items))}.npy"
    shape = (len(items), 3, size, size)
    _once(path, lambda: _decode(items, size, path, shape, progress))
    array = _read(path)
    if array.shape != shape or array.dtype != np.uint8:
        raise InputError(f"the cache {str(path)!r} is damaged: delete it, and it is made again")
    return array


def item_pixels(item: Item, size: int) -> np.ndarray:
    """The image of an item, resized. Shape: (3, size, size), uint8"""
    image = item.load().convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image).transpose(2, 0, 1)


def _once(path: Path, write: Callable[[], None]) -> None:
    """Write a file that is not there; while one process does, the others wait."""
    if not path.exists():
        with locked(path.with_name(f".{path.name}.lock"), wait=True):
            if not path.exists():
                write()


def _read(path: Path) -> np.ndarray:
    try:
        return read_array(path)
    except InputError as error:
        raise InputError(f"{error}; it is a cache: delete it, and it is made again") from None


def _decode(
    items: Sequence[Item], size: int, path: Path, shape: tuple[int, ...], progress: Progress
) -> None:
    with writing(path) as temporary, ThreadPoolExecutor() as pool:
        array = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
        decoded = progress.track(
            pool.map(partial(item_pixels, size=size), items), "decode images", len(items)
        )
        for index, image in enumerate(decoded):
            array[index] = image
        array.flush()
