"""Weight files: safetensors only, because opening a pickled one can run its author's code."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lors.system.errors import InputError

__all__ = ["check_width", "content_digest", "refuse_pickle"]

CHUNK = 2**20


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


def content_digest(path: Path) -> bytes:
    """The SHA-256 of a file, which may be larger than memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.digest()


def check_width(found: int, expected: int, name: str) -> None:
    """Refuse embeddings of another length than a file says that a text trunk gives.

    Raises:
        InputError: it is another trunk under the same name, or the file is wrong.
    """
    if found != expected:
        raise InputError(
            f"the text trunk {name!r} gives embeddings of {found} numbers, but {expected} are "
            "expected of it: use the trunk that the file was made with"
        )
