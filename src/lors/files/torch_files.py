"""Files of ``torch.save``: the one place where lors opens a pickle, and only if asked to import it.

The archive and what its pickle describes are checked before torch sees the file. Then torch reads
it with ``weights_only=True``, which makes nothing but tensors and plain values, too.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lors.files.artifacts import writing
from lors.files.pickles import Stored, TensorSpec, described
from lors.system.errors import InputError

__all__ = ["read_tensors", "write_tensors_as_pickle"]

PICKLE, RECORDS, PIECE = 2**25, 200_000, 2**20

PARTS = ("version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id")
"""What an archive holds besides its pickle and its numbers."""

LEGACY = "it is no ZIP archive, as torch has written since 1.6: load and save it with a newer torch"


def read_tensors(path: Path, check: Callable[[Any], None]) -> Any:
    """What a file of ``torch.save`` holds: lists, dictionaries and plain values with CPU tensors.

    The numbers stay in the file until they are used: copy what you keep.

    Args:
        path: the file.
        check: is given the content with a ``TensorSpec`` for every tensor, before any number is
            read; it raises a ``ValueError`` if that is not what it should be.

    Raises:
        InputError: it is no such file, it is damaged, it holds more than tensors, or ``check``
            refuses it.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        records, pickled = _records(path)
        specs = described(pickled)
        check(specs)
        _check_stored(specs, records)
    except (ValueError, zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"cannot import {str(path)!r}: {reason}") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # of many kinds, as torch does not expect damaged files
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"cannot import {str(path)!r}: torch does not read it: {reason}") from None
    if not _same(specs, found):
        raise InputError(f"cannot import {str(path)!r}: torch reads another shape than it states")
    return found


def _records(path: Path) -> tuple[dict[str, int], bytes]:
    """How many bytes each record of numbers has, by name; and the pickle.

    All records are read once, so that their checksums are known to fit. The archive must be laid
    out as torch does it, one record after the other: then all readers see the same in it.
    """
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise ValueError(LEGACY)
        file.seek(max(0, path.stat().st_size - 22))
        if file.read(4) != b"PK\x05\x06":
            raise ValueError("it is damaged: its table of contents is not at its end")
        with zipfile.ZipFile(file) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            names = [entry.filename for entry in entries]
            _check_layout(entries, path.stat().st_size)
            root = names[0].partition("/")[0]
            kept, pickled, sizes = (f"{root}/data/", f"{root}/data.pkl", dict[str, int]())
            others = {f"{root}/{part}" for part in PARTS} | {pickled}
            if pickled not in names:
                raise ValueError("it holds no tensors of torch.save")
            content = b""
            for entry in entries:
                if entry.filename.startswith(kept):
                    sizes[entry.filename.removeprefix(kept)] = entry.file_size
                elif entry.filename not in others:
                    raise ValueError(
                        f"it holds {entry.filename[:60]!r}, which no set or expert has"
                    )
                elif entry.file_size > (PICKLE if entry.filename == pickled else 100):
                    raise ValueError(f"its {entry.filename[:60]!r} is too large")
                found = _read(archive, entry, entry.filename == pickled)
                content = found or content
                if entry.filename == f"{root}/byteorder" and archive.read(entry) != b"little":
                    raise ValueError("its numbers are big-endian")
    return sizes, content


def _check_layout(entries: list[zipfile.ZipInfo], size: int) -> None:
    if not 0 < len(entries) <= RECORDS or len({e.filename for e in entries}) != len(entries):
        raise ValueError(f"it is damaged: it has {len(entries)} records, or one twice")
    ends = [entry.header_offset for entry in entries[1:]] + [size]
    for entry, end in zip(entries, ends, strict=True):
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise ValueError("it is compressed: save it again with torch.save")
        if entry.flag_bits & 1 or entry.header_offset + 30 + entry.file_size > end:
            raise ValueError("it is damaged: its records do not fit it")
    if entries[0].header_offset != 0:
        raise ValueError("it is damaged: something lies before its first record")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, keep: bool) -> bytes:
    """Read a record to its end, where its checksum is compared."""
    kept = []
    with archive.open(entry) as record:
        while piece := record.read(PIECE):
            if keep:
                kept.append(piece)
    return b"".join(kept)


def _check_stored(specs: Any, records: dict[str, int]) -> None:
    """Every record has as many bytes as its tensors claim: torch itself does not ask."""
    known: dict[str, Stored] = {}
    for spec in _tensors(specs):
        stored = spec.stored
        if known.setdefault(stored.key, stored) != stored:
            raise ValueError(f"its record {stored.key[:40]!r} has two sizes")
        if records.get(stored.key) != stored.size:
            raise ValueError(
                f"its record {stored.key[:40]!r} should have {stored.size:,} bytes, and has "
                f"{records.get(stored.key, 0):,}"
            )


def _tensors(specs: Any) -> list[TensorSpec]:
    """All tensors; only of what a check has found to be plain lists and dictionaries."""
    if isinstance(specs, TensorSpec):
        return [specs]
    parts = specs.values() if isinstance(specs, dict) else specs
    if not isinstance(specs, (dict, list, tuple)):
        return []
    return [spec for part in parts for spec in _tensors(part)]


def _same(specs: Any, found: Any) -> bool:
    """Whether torch made what the pickle was understood to describe."""
    if isinstance(specs, TensorSpec):
        return (
            isinstance(found, Tensor)
            and found.layout is torch.strided
            and tuple(found.shape) == specs.shape
            and str(found.dtype) == f"torch.{specs.stored.dtype}"
        )
    if type(specs) is not type(found):
        return False
    if isinstance(specs, dict):
        return specs.keys() == found.keys() and all(_same(specs[k], found[k]) for k in specs)
    if isinstance(specs, (list, tuple)):
        return len(specs) == len(found) and all(map(_same, specs, found))
    return bool(specs == found)


def write_tensors_as_pickle(path: Path, content: Any) -> None:
    """Write what ``torch.load`` reads, whole or not at all, for the scripts of others."""
    with writing(path) as temporary:
        torch.save(content, temporary)
