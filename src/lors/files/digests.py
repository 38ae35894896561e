"""What files hold, as digests: a file is hashed once, and remembered until it changes.

Names, sizes and times do not tell two datasets apart: archives and container images set all times
equal. So caches and experts are named by content. That a file is unchanged is seen by its inode,
size, modification time and change time, the last of which no program can set; and because some
file systems make these up, blocks of some files are compared at every start, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lors.files.artifacts import home, remove_leftovers, write_text
from lors.files.cache import fingerprint
from lors.system.errors import InputError
from lors.system.locks import locked
from lors.system.progress import Progress
from lors.system.threads import threaded

__all__ = ["block_digest", "file_digests"]

Signature = tuple[int, int, int, int]
"""Inode, size, modification time, change time."""

PIECE = 2**20
"""Bytes read at a time."""
BLOCK, BLOCKS = 4096, 8
"""Bytes of a block, and how many of a file are compared with what is remembered of them."""
COMPARED = 32
"""How many files of a dataset are compared at each start."""
SETTLED = 2 * 10**9
"""Nanoseconds: a file that changed just now may change again without a new time."""


_Known = tuple[int, int, int, int, str, str]
"""What is remembered of a file: its signature, its digest, and that of some blocks."""


def file_digests(
    root: Path,
    paths: Sequence[str | Path],
    progress: Progress,
    stats: Sequence[os.stat_result] | None = None,
) -> list[str]:
    """The digest of what each file holds. Those that have not changed are not read again.

    Args:
        root: the folder that the files lie in; what is remembered of them has its name.
        paths: the files.
        progress: reports long-running work.
        stats: of the files, if they are known.

    Raises:
        InputError: a file cannot be read.
    """
    names = [str(path) for path in paths]
    memory = home() / "digests" / f"{fingerprint(str(root))}.json"
    known = _remembered(memory)
    found = stats or [_stat(name) for name in names]
    signatures = dict(zip(names, map(_signature, found), strict=True))
    same = [n for n in signatures if n in known and known[n][:4] == signatures[n]]
    some = random.SystemRandom().sample(same, min(COMPARED, len(same)))
    if any(block_digest(name) != known[name][5] for name in some):
        progress.say(
            f"Files in {str(root)!r} have changed and kept their times: all are read again."
        )
        same = []
    changed = list(signatures.keys() - set(same))
    digests = {name: known[name][4] for name in same}
    if changed:
        hashed = progress.track(threaded(_hashed, changed), "read files", len(changed))
        new: dict[str, _Known] = {}
        try:
            for name, entry in zip(changed, hashed, strict=True):
                new[name] = entry
        finally:
            _remember(memory, known, new)
        digests |= {name: entry[4] for name, entry in new.items()}
    return [digests[name] for name in names]


def _stat(name: str) -> os.stat_result:
    try:
        return os.stat(name)
    except OSError as error:
        raise InputError(f"cannot read {name!r}: {error.strerror}") from None


def _signature(found: os.stat_result) -> Signature:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _hashed(name: str) -> _Known:
    """A file as it is now; one that changes while it is read is not remembered."""
    before = _signature(_stat(name))
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(name, "rb", buffering=0) as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    except OSError as error:
        raise InputError(f"cannot read {name!r}: {error.strerror}") from None
    return *before, digest.hexdigest(), block_digest(name)


def block_digest(name: str | Path) -> str:
    """Of a file's size and of some blocks of it: tells files of different origin apart quickly.

    Raises:
        InputError: it cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(name, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(str(size).encode())
            last = max(0, size - BLOCK)
            for place in sorted({last * i // (BLOCKS - 1) for i in range(BLOCKS)}):
                file.seek(place)
                digest.update(file.read(BLOCK))
    except OSError as error:
        raise InputError(f"cannot read {str(name)!r}: {error.strerror}") from None
    return digest.hexdigest()


def _remembered(memory: Path) -> dict[str, _Known]:
    """What was hashed before; nothing if that cannot be read, and then all is hashed again."""
    try:
        entries = json.loads(memory.read_bytes())
        return {name: (*entry[:4], str(entry[4]), str(entry[5])) for name, entry in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return {}


def _remember(memory: Path, known: dict[str, _Known], new: dict[str, _Known]) -> None:
    """Keep what was hashed, but for files that changed just now; if it fails, nothing is lost."""
    now = time.time_ns()
    for name, entry in new.items():
        known.pop(name, None)
        with suppress(OSError):
            if max(entry[2:4]) < now - SETTLED and _signature(os.stat(name)) == entry[:4]:
                known[name] = entry
    with suppress(OSError), locked(memory.with_suffix(".lock")) as mine:
        if mine:
            remove_leftovers(memory.parent, memory.name)
            write_text(memory, json.dumps(known))
