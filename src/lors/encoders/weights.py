"""Weight files: safetensors only, because opening a pickled one can run its author's code."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lors.system.errors import InputError

__all__ = ["LOCAL_FILES", "check_width", "content_digest", "not_downloaded", "refuse_pickle"]

CHUNK = 2**20

LOCAL_FILES = "encoder.image_weights=FILE.safetensors encoder.text=transformers:FOLDER"
"""How to use weights that are here."""


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


def not_downloaded(what: str) -> InputError:
    """What to say where weights are wanted of a Hub that does not answer."""
    return InputError(
        f"the weights of {what} must be downloaded, and the Hugging Face Hub does not answer: run "
        f"the same command once while online, or use local files: {LOCAL_FILES}"
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
