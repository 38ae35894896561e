"""Where the files of a tar archive lie: a walk over its headers, in ustar, GNU and PAX format.

Python's tarfile reads an extended header whole, however large it claims to be, parses it in time
that grows with the square of its size, and takes a damaged header for the end of the archive.
Here sizes are bounded before anything is read, and what is damaged is refused. Links, folders and
devices are passed over. The format is described in POSIX (pax) and in the manual of GNU tar.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

__all__ = ["Member", "TarError", "tar_members"]

BLOCK = 512
EXTENDED_BYTES = 2**16
"""The largest extended header: it holds a path and a few numbers."""
EXTENDED_HEADERS = 8
"""The most extended headers of one member; real ones have one or two."""
MEMBERS = 5_000_000
"""The most members of an archive: more would not fit in memory."""

REGULAR = (b"0", b"\0", b"7")
NO_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Links, devices, folders and pipes: nothing follows their header, whatever size it says."""
LONG_NAME, LONG_LINK, SPARSE = b"L", b"K", b"S"
PAX, PAX_GLOBAL = (b"x", b"X"), b"g"


class TarError(Exception):
    """The archive is damaged, or holds what is not read."""


class Member(NamedTuple):
    """A regular file in an archive: its name, and where its bytes are."""

    name: str
    offset: int
    size: int


def tar_members(path: Path) -> Iterator[Member]:
    """The regular files of an archive, in its order.

    Raises:
        TarError: it is damaged, cut off or compressed, or holds sparse files.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        yield from _walk(file, os.fstat(file.fileno()).st_size)


def _walk(file: BinaryIO, length: int) -> Iterator[Member]:
    if not length:
        raise TarError("it is empty")
    at, count = 0, 0
    given: dict[bytes, bytes] = {}  # what extended headers say of the member that follows
    extended = 0
    while header := _header(file, at):
        kind, size, start = header[156:157], _size(header, at), at + BLOCK
        count, extended = count + 1, extended + 1
        if count > MEMBERS or extended > EXTENDED_HEADERS + 1:
            what = "members" if count > MEMBERS else f"extended headers at byte {at:,}"
            raise TarError(f"it has too many {what}")
        if kind in PAX or kind in (PAX_GLOBAL, LONG_NAME, LONG_LINK):
            found = _extended(file, kind, start, size, length)
            given = {**found, **given}  # the first counts, as for tarfile
        else:
            if kind == SPARSE or any(key.startswith(b"GNU.sparse") for key in given):
                raise TarError(f"it holds a sparse file at byte {at:,}: pack it without --sparse")
            size = _decimal(given[b"size"], at) if b"size" in given else size
            if kind in REGULAR and not (name := _name(header, given, at)).endswith("/"):
                yield Member(name, start, size)  # a slash at the end: an old program's folder
            size = 0 if kind in NO_DATA else size
            given, extended = {}, 0
        at = start + -(-size // BLOCK) * BLOCK
        if at > length:
            raise TarError("it is cut off")
    if given:
        raise TarError(f"no member follows the extended header before byte {at:,}")


def _header(file: BinaryIO, at: int) -> bytes:
    """The header at an offset, or nothing at the end of the archive."""
    file.seek(at)
    header = file.read(BLOCK)
    if not header.strip(b"\0"):
        return b""
    if len(header) < BLOCK:
        raise TarError("it is cut off")
    field = header[148:156]
    total = sum(header) - sum(field) + 8 * ord(" ")
    said = _octal(field, at)
    if said != total:
        signed = total - 256 * sum(byte > 127 for byte in header[:148] + header[156:])
        if said != signed:  # as some old programs count
            raise TarError(f"the header at byte {at:,} is damaged")
    return header


def _size(header: bytes, at: int) -> int:
    field = header[124:136]
    if field[0] == 0x80:  # a binary number, for files of 8 GiB and more
        return int.from_bytes(field[1:], "big")
    return _octal(field, at)


def _octal(field: bytes, at: int) -> int:
    digits = field.partition(b"\0")[0].strip(b" ")
    if digits.strip(b"01234567"):
        raise TarError(f"the header at byte {at:,} is damaged")
    return int(digits or b"0", 8)


def _decimal(field: bytes, at: int) -> int:
    if not field.isdigit() or len(field) > 20:
        raise TarError(f"the extended header before byte {at:,} is damaged")
    return int(field)


def _extended(
    file: BinaryIO, kind: bytes, start: int, size: int, length: int
) -> dict[bytes, bytes]:
    """What an extended header says of the member that follows; bounded before it is read."""
    if size > EXTENDED_BYTES:
        raise TarError(
            f"the extended header at byte {start - BLOCK:,} has {size:,} bytes, and "
            f"{EXTENDED_BYTES:,} are enough for any name"
        )
    if start + size > length:
        raise TarError("it is cut off")
    file.seek(start)
    body = file.read(size)
    if kind == LONG_LINK:
        return {}
    if kind == LONG_NAME:
        return {b"path": body.partition(b"\0")[0]}
    records = dict(_records(body, start))
    if kind == PAX_GLOBAL:
        if any(key in (b"path", b"size") or key.startswith(b"GNU.sparse") for key in records):
            raise TarError(f"the header at byte {start - BLOCK:,} gives all members one name")
        return {}
    return records


def _records(body: bytes, start: int) -> Iterator[tuple[bytes, bytes]]:
    """The records ``LENGTH KEY=VALUE`` of a PAX header."""
    at = 0
    while at < len(body) and body[at]:
        digits = body[at : at + 6].partition(b" ")[0]
        size = int(digits) if digits.isdigit() and len(digits) < 6 else 0
        record = body[at : at + size]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if len(record) < size or not equals or not key or record[-1:] != b"\n":
            raise TarError(f"the extended header at byte {start - BLOCK:,} is damaged")
        yield key, value
        at += size


def _name(header: bytes, given: dict[bytes, bytes], at: int) -> str:
    name = given.get(b"path", b"")
    if not name:
        name, prefix = (header[a:b].partition(b"\0")[0] for a, b in ((0, 100), (345, 500)))
        if prefix and header[257:263] == b"ustar\0":  # GNU keeps times in its place
            name = prefix + b"/" + name
    if b"\0" in name:
        raise TarError(f"the name of the member at byte {at:,} holds a NUL")
    return name.decode("utf-8", "surrogateescape")
