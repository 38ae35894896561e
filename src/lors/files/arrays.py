"""Arrays in .npy and .safetensors files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from lors.files.artifacts import writing
from lors.system.errors import InputError, out_of_memory

__all__ = ["read_array", "read_tensor", "write_array", "write_blocks"]

FLOATS = {"F16": np.float16, "F32": np.float32, "F64": np.float64}
"""The types of embeddings, by the names of safetensors."""


def read_array(path: Path) -> np.ndarray:
    """The array of an .npy file, memory-mapped; nothing in it is ever unpickled.

    Raises:
        InputError: it is absent, damaged, holds objects, or is not a single array.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # on damaged files, numpy raises anything
        if out_of_memory(error):
            raise
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


def read_tensor(path: Path, name: str) -> np.ndarray:
    """A tensor of floating-point numbers in a .safetensors file, memory-mapped.

    Args:
        path: the file.
        name: of the tensor; if there is only one, it may have any.

    Raises:
        InputError: the file is damaged, or has no such tensor.
    """
    try:
        with safe_open(path, "np") as handle:  # checks that offsets, shapes and sizes fit
            names = list(handle.keys())
            if name not in names and len(names) != 1:
                raise InputError(f"{str(path)!r} holds {names[:5]}: name the right one {name!r}")
            name = name if name in names else names[0]
            entry = handle.get_slice(name)
            shape, dtype = tuple(entry.get_shape()), FLOATS.get(entry.get_dtype())
        if dtype is None:
            raise InputError(
                f"the embeddings {str(path)!r} are {entry.get_dtype()}: give finite floating-point "
                f"numbers, one of {', '.join(FLOATS)}"
            )
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", _offset(path, name), shape)
    except (OSError, ValueError, TypeError, LookupError, SafetensorError) as error:
        if out_of_memory(error):
            raise
        raise InputError(f"cannot read the embeddings {str(path)!r}: {error}") from None


def _offset(path: Path, name: str) -> int:
    """Where the numbers of a tensor begin."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        first, _ = json.loads(file.read(length))[name]["data_offsets"]
        return 8 + length + int(first)
