"""One process at a time in a folder; the operating system frees it when the process ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from lors import ranks
from lors.errors import InputError
from lors.progress import Progress

__all__ = ["locked", "one_each", "sole_user"]

T = TypeVar("T")


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


def one_each(
    items: Sequence[T],
    claim: Callable[[T, bool], AbstractContextManager[bool]],
    work: Callable[[T], None],
    progress: Progress,
    what: str,
) -> None:
    """Share work with all processes that come here: each item is done by one of them.

    Returns when all items are done, by whomever. What a process that ends leaves undone is done by
    another.

    Args:
        items: what to do.
        claim: a lock on an item, as ``locked`` is; told whether to wait for it.
        work: does an item, or nothing if it is done already.
        progress: who to tell.
        what: the work in words.
    """
    begin = ranks.rank() * len(items) // ranks.size()  # each rank at another item
    items = [*items[begin:], *items[:begin]]
    elsewhere = []
    for item in progress.track(items, what, len(items)):
        with claim(item, False) as mine:
            if mine:
                work(item)
            else:
                elsewhere.append(item)
    for item in progress.track(elsewhere, "wait for other processes", len(elsewhere)):
        with claim(item, True):
            work(item)


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
