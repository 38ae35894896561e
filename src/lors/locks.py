"""One process at a time in a folder; the operating system frees it when the process ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lors import ranks
from lors.errors import InputError

__all__ = ["locked", "sole_user"]


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool]:
    """Hold a lock file for the length of the block.

    Args:
        path: the lock file; it is left there, since removing it would let two processes hold it.
        wait: until another process lets go of it.

    Yields:
        Whether this process holds it; without waiting, another may.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """Work in a folder that no other process works in; rank 0 holds it for all ranks.

    Raises:
        InputError: another process does.
    """
    with ExitStack() as stack:

        def claim() -> None:
            if not stack.enter_context(locked(folder / ".lock")):
                raise InputError(
                    f"another process is working in {str(folder)!r}: wait for it to end, or choose "
                    "another --out"
                )

        ranks.first(claim)
        yield
