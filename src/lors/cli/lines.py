"""Progress as plain lines, for the logs of batch jobs: one now and then, written at once."""

from __future__ import annotations

import threading
import time

from rich.console import Console

from lors.cli.work import Clock, Work, Works, duration
from lors.system.errors import printable

__all__ = ["Lines"]

SHORT = 1.0
"""Work that takes fewer seconds than this is not mentioned."""
SECOND_LINE = 5.0
LONGEST_SILENCE = 60.0


class Lines(Works):
    """Shows progress as lines with the time since the start, the work, the count and the facts.

    Work has a line after one second, after five, after as long again each time until there is one
    a minute, and at its end.

    Args:
        console: its file gets the lines.
        start: when the program started, by the clock.
        clock: gives the time in seconds.
    """

    def __init__(self, console: Console, start: float, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._console, self._start = console, start
        self._due = 0.0
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        """Begin to write lines."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more lines, except for where unfinished work stopped."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            if self._works:
                self._end(self._works[0])

    def say(self, text: str) -> None:
        """See ``lors.system.progress.Progress``."""
        with self._lock:
            self._write(text)

    def doing(self, what: str) -> None:
        """Write what is happening."""
        with self._lock:
            super().doing(what)
            if len(self._works) == 1:
                self._write(what)
                self._due = self._clock() + SECOND_LINE

    def write_due(self) -> None:
        """Write a line about the work under way, if it is time for one."""
        with self._lock:
            now = self._clock()
            if not self._works or now < self._due:
                return
            elapsed = self._works[0].elapsed(now)
            self._write(_line(self._works, now))
            pause = SECOND_LINE - elapsed if elapsed < SECOND_LINE else elapsed
            self._due = now + min(pause, LONGEST_SILENCE)

    def _tick(self) -> None:
        """Look once a second, as a single item may take hours."""
        while not self._stopped.wait(SHORT):
            self.write_due()

    def _begin(self, what: str, total: int, done: int) -> Work:
        with self._lock:
            work = super()._begin(what, total, done)
            if len(self._works) == 1:
                self._due = work.begun + SHORT
            return work

    def _advance(self, work: Work) -> None:
        with self._lock:
            super()._advance(work)

    def _end(self, work: Work) -> None:
        with self._lock:
            now = self._clock()
            long = work.elapsed(now) >= SHORT
            if work.total and long and self._works and work is self._works[0]:
                how = "took" if work.done >= work.total else "stopped after"
                self._write(_line([work], now, f"{how} {duration(work.elapsed(now))}"))
            super()._end(work)

    def _write(self, text: str) -> None:
        file = self._console.file
        line = f"{duration(self._clock() - self._start)} {printable(text)}\n"
        encoding = getattr(file, "encoding", None) or "ascii"
        file.write(line.encode(encoding, "backslashreplace").decode(encoding))
        file.flush()


def _line(works: list[Work], now: float, end: str = "") -> str:
    """The work, how far it is, what it found, and its end."""
    parts = [f"{work.what} {work.count()}".rstrip() for work in works]
    for work in works:
        parts += work.shown_facts()
    left = works[0].left(now) if works[0].total else None
    if end:
        parts.append(end)
    elif left is not None:
        parts.append(f"{duration(left)} left")
    return ", ".join(parts)
