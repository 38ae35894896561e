"""Weight files: safetensors only, because opening a pickled one can run its author's code."""

from __future__ import annotations

from lors.errors import InputError

__all__ = ["refuse_pickle"]


def refuse_pickle(file: str, what: str) -> None:
    """Refuse a weight file of any format but safetensors.

    Raises:
        InputError: the name of the file ends in something else.
    """
    if not file.endswith(".safetensors"):
        raise InputError(
            f"{what}: {file!r} is not a .safetensors file, and no other is read, because weights "
            "in pickled files can run code: convert it with safetensors.torch.save_file"
        )
