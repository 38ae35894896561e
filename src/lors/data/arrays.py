"""Arrays in .npy files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lors.errors import InputError

__all__ = ["read_array"]


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
