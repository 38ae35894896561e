"""Progress as plain lines, for the logs of batch jobs: one now and then, written at once."""

from __future__ import annotations

import time

from rich.console import Console

from lors.system.errors import printable
from lors.system.showing.ticking import Ticking
from lors.system.showing.work import SHORT, Clock, Work, duration, line

__all__ = ["Lines"]

SECOND_LINE = 5.0
LONGEST_SILENCE = 60.0


class Lines(Ticking):
    """Shows progress as lines with the time since the start, the work, the count and the facts.

    Work has a line after one second, after five, after as long again each time until there is one
    a minute, and at its end; work of less than a second has none.

    Args:
        console: its file gets the lines.
        start: when the program started, by the clock; default: now.
        clock: gives the time in seconds.
    """

    def __init__(
        self, console: Console, start: float | None = None, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(SHORT, clock)
        self._console, self._start = console, clock() if start is None else start
        self._due = 0.0

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

    def _tick(self) -> None:
        """Write a line about the work under way, if it is time for one."""
        with self._lock:
            now = self._clock()
            if not self._works or now < self._due:
                return
            elapsed = self._works[0].elapsed(now)
            self._write(line(self._works, now))
            pause = SECOND_LINE - elapsed if elapsed < SECOND_LINE else elapsed
            self._due = now + min(pause, LONGEST_SILENCE)

    def _close(self) -> None:
        """Say where unfinished work stopped."""
        super()._close()
        with self._lock:
            if self._works:
                self._end(self._works[0])

    def _begin(self, what: str, total: int, done: int) -> Work:
        with self._lock:
            work = super()._begin(what, total, done)
            if len(self._works) == 1:
                self._due = work.begun + SHORT
            return work

    def _end(self, work: Work) -> None:
        with self._lock:
            now = self._clock()
            long = work.elapsed(now) >= SHORT
            if work.total and long and self._works and work is self._works[0]:
                how = "took" if work.done >= work.total else "stopped after"
                self._write(line([work], now, f"{how} {duration(work.elapsed(now))}"))
            super()._end(work)

    def _write(self, text: str) -> None:
        file = self._console.file
        text = f"{duration(self._clock() - self._start)} {printable(text)}\n"
        encoding = getattr(file, "encoding", None) or "ascii"
        file.write(text.encode(encoding, "backslashreplace").decode(encoding))
        file.flush()
