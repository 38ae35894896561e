"""The array cache: every image is decoded once, into a memory-mapped uint8 array.

What is below ``home()`` can be made again, so a file that cannot be read is one to delete.
"""

from __future__ import annotations

import errno
import hashlib
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from lors.data.bad_row import BadRowError
from lors.data.pairs import Item
from lors.files.arrays import read_array, write_array, write_blocks
from lors.files.artifacts import home, remove_leftovers
from lors.system.errors import InputError, LorsError
from lors.system.locks import locked
from lors.system.progress import Progress
from lors.system.threads import threaded

__all__ = [
    "UnreadableError",
    "cache_errors",
    "cached_array",
    "cached_images",
    "fingerprint",
    "item_pixels",
    "made_once",
    "pixels_or_error",
    "reading_cache",
]


class UnreadableError(InputError):
    """Images cannot be decoded.

    Args:
        message: about the first of them.
        found: what is wrong, by the place of the item.
    """

    def __init__(self, message: str, found: Mapping[int, BadRowError] | None = None) -> None:
        super().__init__(message)
        self.found = dict(found or {})


def fingerprint(*parts: str) -> str:
    """A short name for any content."""
    digest = hashlib.sha256()
    for part in parts:
        if "\0" in part:  # it ends a part: ("a\0b",) would be ("a", "b")
            raise InputError(f"{reprlib.repr(part)} holds a NUL character: take it out")
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")  # file names may hold any
    return digest.hexdigest()[:16]


def cached_array(path: Path, make: Callable[[], np.ndarray], progress: Progress) -> np.ndarray:
    """The array in a file, memory-mapped; made and written if the file is not there."""
    made_once(path, lambda: write_array(path, make()), progress)
    return _read(path)


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
    array = _read(path)
    if array.shape != shape or array.dtype != np.uint8:
        raise InputError(f"the cache {str(path)!r} is damaged: delete it, and it is made again")
    return array


def item_pixels(item: Item, size: int) -> np.ndarray:
    """The image of an item, resized. Shape: (3, size, size), uint8"""
    image = item.load().convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(image).transpose(2, 0, 1)


def made_once(path: Path, write: Callable[[], None], progress: Progress) -> None:
    """Write a file of the cache that is not there; while one process does, the others wait.

    Args:
        path: the file.
        write: writes it.
        progress: reports a wait for another process.

    Raises:
        LorsError: the cache cannot be written; the message says where it is.
    """
    if path.exists():
        return
    lock = path.with_name(f".{path.name}.lock")
    with cache_errors(path), locked(lock, wait=True, progress=progress):
        remove_leftovers(path.parent, path.name)
        if not path.exists():
            write()


@contextmanager
def cache_errors(path: Path) -> Iterator[None]:
    """Say of a cache that cannot be written where it is and what to do.

    Raises:
        LorsError: the disk is full, or the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise LorsError(
            f"{str(path)!r} cannot be written ({error.strerror}): make room, or choose another "
            "folder by LORS_HOME (for experts also experts.folder); 'lors doctor' shows what takes "
            "how much space"
        ) from None


@contextmanager
def reading_cache() -> Iterator[None]:
    """Say of a damaged file of the cache how to get rid of it.

    Raises:
        InputError: as within the block, with what to do.
    """
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{error}; it is a cache: delete it, or run 'lors doctor --clean', and it is made again"
        ) from None


def _read(path: Path) -> np.ndarray:
    with reading_cache():
        return read_array(path)


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
