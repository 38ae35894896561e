"""Arrays in .npy files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lors.artifacts import writing
from lors.errors import InputError

__all__ = ["read_array", "write_array", "write_blocks"]


def read_array(path: Path) -> np.ndarray:
    """The array of an .npy file, memory-mapped; nothing in it is ever unpickled.

    Raises:
        InputError: it is absent, damaged, holds objects, or is not a single array.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # on damaged files, numpy raises anything
        reason = " ".join(str(error).split()) or type(error).__name__
        if "pickle" in reason:  # it goes on to tell how to unpickle it all the same
            reason = "it is not an .npy file of plain numbers"
        raise InputError(f"cannot read the array {str(path)!r}: {reason}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{str(path)!r} holds several arrays: save one as .npy")
    return array


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an .npy file whole or not at all."""
    write_blocks(path, array.shape, array.dtype, [array])


def write_blocks(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[np.ndarray]
) -> None:
    """Write an .npy file block by block, whole or not at all.

    The room is taken first, so that a disk that is too small is found at once. A memory map would
    end in a bus error there, and ``np.save`` in an error that does not say why.

    Args:
        path: where to.
        shape: of the whole array.
        dtype: of the whole array.
        blocks: its parts, one after the other in memory.

    Raises:
        OSError: the disk is full, or the like; what was there before stays.
    """
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    with writing(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        _reserve(file, int(np.prod(shape)) * dtype.itemsize)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)


def _reserve(file: BinaryIO, count: int) -> None:
    if not hasattr(os, "posix_fallocate") or not count:
        return
    try:
        os.posix_fallocate(file.fileno(), file.tell(), count)
    except OSError as error:  # some file systems cannot
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
