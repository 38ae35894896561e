"""One process at a time in a folder; the operating system frees it when the process ends.

Beside a lock file that is held there is a note of who holds it, which is touched now and then: a
sign of life. Whoever waits for the lock gives up when there has been none for ``LORS_TIMEOUT``
seconds.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from filelock import BaseFileLock, FileLock, Timeout

from lors.system import ranks
from lors.system.errors import InputError, LorsError
from lors.system.heartbeat import TIMEOUT, Silence, interval, timeout
from lors.system.progress import Progress, Silent

__all__ = ["locked", "one_each", "sole_user"]

T = TypeVar("T")

SOON = 5.0
"""Seconds after which a process says that it waits."""


@contextmanager
def locked(path: Path, wait: bool = False, progress: Progress | None = None) -> Iterator[bool]:
    """Hold a lock file for the length of the block.

    Args:
        path: the lock file; it is left there, since removing it would let two processes hold it.
        wait: until another process lets go of it.
        progress: told about a wait of more than some seconds.

    Yields:
        Whether this process holds it; without waiting, another may.

    Raises:
        LorsError: the process that holds it has shown no sign of life for ``LORS_TIMEOUT`` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=min(SOON, interval()) if wait else 0)
    except Timeout:
        if not wait:
            yield False
            return
        _wait(lock, path, progress or Silent())
    try:
        with _held(path):
            yield True
    finally:
        lock.release()


def _wait(lock: BaseFileLock, path: Path, progress: Progress) -> None:
    progress.say(f"Waiting for {_holder(path).name}, which holds {str(path)!r}.")
    silence = Silence()
    while True:
        holder = _holder(path)
        if silence.seconds(holder) > timeout():
            raise LorsError(
                f"{holder.name} holds {str(path)!r} and has shown no sign of life for "
                f"{timeout():.0f} s ({TIMEOUT}): see whether it or its machine is stopped, let it "
                "go on or end it, and run the same command again"
            )
        with suppress(Timeout):
            lock.acquire(timeout=interval())
            return


class _Holder(NamedTuple):
    """Who holds a lock, and when it last touched its note, by the clock of the file system."""

    name: str = "another process"
    touched: int = 0


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.holder")


def _holder(path: Path) -> _Holder:
    note = _note(path)
    try:
        if note.is_file():  # nothing that would block
            with note.open(
                encoding="utf-8", errors="replace"
            ) as file:  # asks a network file system
                touched = os.fstat(file.fileno()).st_mtime_ns
                name = "".join(filter(str.isprintable, file.read(100)))
                return _Holder(name or _Holder().name, touched)
    except OSError:
        pass
    return _Holder()  # it is about to be written, or the holder is an older version of lors


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep a note of this process beside the lock file, and touch it now and then."""
    note, over, every = _note(path), threading.Event(), interval()

    def write() -> None:
        with suppress(OSError):  # a sign of life is not worth an error
            note.unlink(missing_ok=True)  # it may be a link that a stranger put there
            with note.open("x", encoding="utf-8") as file:
                file.write(f"process {os.getpid()} on {platform.node()}")

    def beat() -> None:
        while not over.wait(every):
            try:
                os.utime(note)
            except OSError:
                write()

    write()
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            note.unlink()


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
        progress: reports long-running work.
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
            path = folder / ".lock"
            if not stack.enter_context(locked(path)):
                raise InputError(
                    f"another process is working in {str(folder)!r} ({_holder(path).name}): wait "
                    "for it to end, or choose another --out"
                )

        ranks.from_rank_zero(claim)
        yield
