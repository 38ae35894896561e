"""Arrays in .npy and .safetensors files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from lors.errors import InputError, out_of_memory

__all__ = ["read_array", "read_tensor"]

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
