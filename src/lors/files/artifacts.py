"""Files: tensors with a validated JSON header, written whole or not at all, never unpickled.

A file carries checksums of its header and of its tensors: safetensors itself checks only that sizes
fit, and a flipped bit in a number would go unnoticed.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lors.files.headers import FORMAT, HEADERS, parse_header
from lors.system.errors import InputError, choose, out_of_memory
from lors.system.memory import check_fits

__all__ = [
    "FORMAT",
    "all_finite",
    "home",
    "leftovers",
    "load",
    "open_artifact",
    "remove_leftovers",
    "save",
    "versions",
    "write_tensors",
    "write_text",
    "writing",
]

TENSORS = 10_000
DTYPES = {"BF16", "F16", "F32", "F64", "I32", "I64", "U8", "BOOL"}
"""What a file may hold; safetensors itself refuses headers of more than 100 MB, and any shapes,
offsets and sizes that do not fit each other."""


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
        _sync(temporary)
        os.replace(temporary, path)
        with suppress(OSError):  # some network mounts cannot sync folders
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def leftovers(folder: Path, name: str = "") -> list[Path]:
    """What ``writing`` left in a folder when its process was killed, of one file or of all."""
    return sorted(folder.glob(f".{glob.escape(name) or '*'}.*.tmp"))


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what a killed process left. Only for who holds the lock of what is written there."""
    for path in leftovers(folder, name):
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait for the disk: without, a power cut may keep the new name and lose its content."""
    if os.name == "nt":  # can sync neither folders nor files that are open for reading
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(text, "utf-8")


def save(path: Path, kind: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write an artefact: a safetensors file with a JSON header.

    Args:
        path: where to.
        kind: what it is, a name in ``HEADERS``; a reader that expects another kind refuses it.
        header: anything JSON can hold.
        tensors: the numbers.

    Raises:
        OSError: the disk is full, or the like; what was there before stays.
    """
    choose(HEADERS, kind, "kind of artefact")
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    about = {**header, "format": FORMAT, "kind": kind, "checksum": _checksum(plain)}
    text = json.dumps({**about, "check": _digest(about)}, allow_nan=False)
    write_tensors(path, plain, {"lors": text})


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file whole or not at all.

    Args:
        path: where to.
        tensors: the numbers.
        metadata: one key at most: safetensors writes several in random order.

    Raises:
        OSError: the disk is full, or the like; what was there before stays.
    """
    with writing(path) as temporary:
        temporary.touch()
        permissions = temporary.stat().st_mode
        try:
            save_file(dict(tensors), temporary, metadata)
        except SafetensorError as error:  # its way to say that the disk is full
            number = re.search(r"os error (\d+)", str(error))
            if number is None:
                raise OSError(f"cannot write {str(path)!r}: {error}") from None
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None
        temporary.chmod(permissions)  # it writes files that only their owner can read


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _digest(about: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(about).encode(), digest_size=16).hexdigest()


@contextmanager
def open_artifact(path: Path, kind: str | None = None) -> Iterator[tuple[dict[str, Any], Any]]:
    """The header of an artefact and a handle that reads its tensors lazily.

    The header and the sizes are checked, the tensors' checksum is not: see ``load``.

    Raises:
        InputError: absent, truncated, not one of ours, of another kind, or of a newer format; or
            a tensor that is asked for is not there.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        handle = safe_open(path, "pt")
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise InputError(
            f"{str(path)!r} has {path.stat().st_size / 2**30:,.1f} GiB, more than fit in memory "
            "here: check that it is what it should be"
        ) from None
    except (SafetensorError, OSError) as error:
        with path.open("rb") as file:
            zipped = file.read(4) == b"PK\x03\x04"
        why = f"is damaged or not a safetensors file: {error}"
        if zipped and path.suffix in (".pt", ".pth"):
            why = "is a pickled file, which only 'lors import' opens, and only as tensors"
        raise InputError(f"{str(path)!r} {why}") from None
    with handle:
        try:
            header = _header(path, handle.metadata() or {}, kind)
            _check_tensors(path, handle)
            yield header, handle
        except SafetensorError as error:
            raise InputError(f"{str(path)!r} is damaged: {error}") from None


def _header(path: Path, metadata: Mapping[str, str], kind: str | None) -> dict[str, Any]:
    if "lors" not in metadata:
        raise InputError(f"{str(path)!r} was not written by lors: it has no header")
    header = parse_header(metadata["lors"], kind, repr(str(path)))
    check = header.pop("check", None)
    if check is None and header["checksum"] is None:  # from before there were checksums
        return header
    try:
        about = json.loads(metadata["lors"])
        fits = about.pop("check") == _digest(about)
    except (KeyError, ValueError, RecursionError):
        fits = False
    if not fits:
        raise InputError(f"{str(path)!r} is damaged: its header does not fit its checksum")
    return header


def _check_tensors(path: Path, handle: Any) -> None:
    """What safetensors allows and we never write."""
    names = list(handle.keys())
    if len(names) > TENSORS:
        raise InputError(f"{str(path)!r} is damaged: it holds {len(names)} tensors")
    for name in names:
        entry = handle.get_slice(name)
        if entry.get_dtype() not in DTYPES or max(entry.get_shape(), default=0) >= 2**40:
            raise InputError(
                f"{str(path)!r} is damaged: {name[:60]!r} is {entry.get_dtype()} of shape "
                f"{entry.get_shape()}"
            )


def load(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and all tensors of an artefact.

    Raises:
        InputError: as ``open_artifact``; or a checksum does not fit, or a number is not finite.
    """
    with open_artifact(path, kind) as (header, handle):
        check_fits(path.stat().st_size, repr(str(path)))
        # Copies, because what the handle gives changes, or crashes, with the file below it.
        tensors = {name: handle.get_tensor(name).clone() for name in handle.keys()}  # noqa: SIM118
    if header["checksum"] not in (None, _checksum(tensors)):
        raise InputError(f"{str(path)!r} is damaged: its numbers do not fit their checksum")
    for name, tensor in tensors.items():
        if not all_finite(tensor):
            raise InputError(f"{str(path)!r} is damaged: not all of {name[:60]!r} is finite")
    return header, tensors


def all_finite(tensor: Tensor) -> bool:
    """Whether all numbers are; a NaN anywhere is the least and the largest, too."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    return all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())
