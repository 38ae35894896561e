"""Files: tensors with a validated JSON header, written whole or not at all, never unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lors.errors import InputError

__all__ = ["FORMAT", "home", "load", "open_artifact", "save", "versions", "write_text", "writing"]

FORMAT = 1
"""Version of all file formats; raised when a reader of the old one could misread a new file."""


def home() -> Path:
    """Where caches and expert buffers live: ``$LORS_HOME``, or ``~/.cache/lors``."""
    return Path(os.environ.get("LORS_HOME") or Path.home() / ".cache" / "lors")


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {name: version(name) for name in ("lors", "torch", "timm", "scikit-learn", "numpy")}


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(text, "utf-8")


def save(path: Path, kind: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write an artefact: a safetensors file with a JSON header.

    Args:
        path: where to.
        kind: what it is, e.g. ``"trajectory"``; a reader that expects another kind refuses it.
        header: anything JSON can hold.
        tensors: the numbers.
    """
    about = {"format": FORMAT, "kind": kind, **header}
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    with writing(path) as temporary:
        save_file(plain, temporary, metadata={"lors": json.dumps(about)})


@contextmanager
def open_artifact(path: Path, kind: str | None = None) -> Iterator[tuple[dict[str, Any], Any]]:
    """The header of an artefact and a handle that reads its tensors lazily.

    Raises:
        InputError: absent, truncated, not one of ours, of another kind, or of a newer format.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        handle = safe_open(path, "pt")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged or not a safetensors file: {error}") from None
    with handle:
        try:
            header = json.loads((handle.metadata() or {})["lors"])
            found_format, found_kind = int(header["format"]), str(header["kind"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{str(path)!r} was not written by lors: it has no header") from None
        if found_format > FORMAT:
            raise InputError(
                f"{str(path)!r} has format {found_format}, but this lors reads up to {FORMAT}: "
                "upgrade lors to open it"
            )
        if kind is not None and found_kind != kind:
            raise InputError(f"{str(path)!r} holds a {found_kind}, not a {kind}")
        yield header, handle


def load(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and all tensors of an artefact."""
    with open_artifact(path, kind) as (header, handle):
        tensors: dict[str, Tensor] = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    return header, {name: torch.as_tensor(t) for name, t in tensors.items()}
