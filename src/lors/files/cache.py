"""The cache below ``home()``: what is in it can be made again.

So a file that cannot be read is one to delete.
"""

from __future__ import annotations

import errno
import hashlib
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lors.files.arrays import read_array, write_array
from lors.files.artifacts import remove_leftovers
from lors.system.errors import InputError, LorsError
from lors.system.locks import locked
from lors.system.progress import Progress

__all__ = [
    "cache_errors",
    "cached_array",
    "fingerprint",
    "made_once",
    "read_cached",
    "reading_cache",
]


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
    return read_cached(path)


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


def read_cached(path: Path) -> np.ndarray:
    with reading_cache():
        return read_array(path)
