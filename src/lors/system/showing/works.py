"""What is under way in this process, from its start to its end; subclasses show it."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from lors.system.showing.shell import ipython
from lors.system.showing.work import Clock, Work

__all__ = ["Works", "current"]

T = TypeVar("T")


class Works:
    """Keeps track of the work under way and shows nothing; subclasses show it.

    Enter it for the time of one call. Without that it starts with the outermost ``track`` and stops
    with it, or, if an exception keeps that from ending, with the notebook's cell or the program.

    Args:
        clock: gives the time in seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._works: list[Work] = []  # each within the one before it
        self.running = False

    def __enter__(self) -> Works:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to show work, unless that has begun."""
        if self.running:
            return
        self.running = True
        _CURRENT.set(self)
        atexit.register(self.stop)
        shell = ipython()
        if shell is not None and threading.current_thread() is threading.main_thread():
            shell.events.register("post_run_cell", self._end_of_cell)
        self._open()

    def stop(self) -> None:
        """Show no more, and forget what is under way."""
        if not self.running:
            return
        self.running = False
        atexit.unregister(self.stop)
        shell = ipython()
        if shell is not None and self._end_of_cell in shell.events.callbacks["post_run_cell"]:
            shell.events.unregister("post_run_cell", self._end_of_cell)
        self._close()
        self._works.clear()

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        """See ``lors.system.progress.Progress``."""
        if done >= total:
            yield from items
            return
        alone = not self.running
        self.start()
        work = self._begin(what, total, done)
        try:
            for item in items:
                yield item
                if work in self._works:
                    self._advance(work)
        finally:
            if work in self._works:  # otherwise it was stopped: by an error, whose traceback may
                self._end(work)  # have kept this generator for long
                if alone:
                    self.stop()

    def note(self, **facts: Any) -> None:
        """See ``lors.system.progress.Progress``."""
        if self._works:
            self._works[-1].facts |= facts

    def say(self, text: str) -> None:
        """See ``lors.system.progress.Progress``."""

    def doing(self, what: str) -> None:
        """Show what is happening until the next call of ``doing`` or ``track``."""
        self._forget_uncounted()
        self._begin(what, 0, 0)

    def _open(self) -> None:
        """Begin to show."""

    def _close(self) -> None:
        """Show a last time; what is under way has stopped."""

    def _begin(self, what: str, total: int, done: int) -> Work:
        self._forget_uncounted()
        work = Work(what, total, done, self._clock())
        if self._works and total:
            self._works[-1].enter(work)
        self._works.append(work)
        return work

    def _advance(self, work: Work) -> None:
        work.advance(self._clock())

    def _end(self, work: Work) -> None:
        """Forget a work that has ended, and what is within it."""
        if work in self._works:
            del self._works[self._works.index(work) :]

    def _forget_uncounted(self) -> None:
        if self._works and not self._works[-1].total:
            self._end(self._works[-1])

    def _end_of_cell(self, *result: object) -> None:
        self.stop()


_CURRENT: ContextVar[Works | None] = ContextVar("shown", default=None)
"""Of each thread."""


def current() -> Works | None:
    """What shows the work that this thread is in the midst of, if any."""
    works = _CURRENT.get()
    return works if works is not None and works.running else None
