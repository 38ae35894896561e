"""Progress in a notebook: one output per call, drawn anew while the call runs, short at its end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from html import escape
from typing import Any

from lors.system.errors import printable
from lors.system.showing.ticking import Ticking
from lors.system.showing.work import SHORT, Clock, Work, in_words, line

__all__ = ["Notebook"]

INTERVAL = 0.2
"""Seconds between two drawings; what ends sooner is never shown."""

BAR = (
    '<progress value="{done}" max="{total}" style="width: 12em; vertical-align: middle"></progress>'
)
ROW = '<div style="margin-left: {indent}em">{content}</div>'

Bundle = dict[str, str]
"""An output as a notebook keeps it: text by MIME type."""


class Notebook(Ticking):
    """Shows progress in the output of a cell: sentences, finished work, a row for each work.

    When all is done, plain text remains: the sentences, and a line for each kind of work of at
    least a second (or the longest, if there is none). Needs no ipywidgets.

    Args:
        shell: the IPython shell of the kernel.
        clock: gives the time in seconds.
    """

    def __init__(self, shell: Any, clock: Clock = time.monotonic) -> None:
        super().__init__(INTERVAL, clock)
        self._shell = shell
        self._output: Any = None
        self._forget()

    def say(self, text: str) -> None:
        """See ``lors.system.progress.Progress``."""
        with self._lock:
            if not self.running:
                self._forget_other_cell()
            self._said.append(printable(text))
            # At once, so that it stands where it was said; if there are many, with the next tick.
            if not self.running or self._clock() - self._drawn_at >= INTERVAL:
                self._draw()

    def _open(self) -> None:
        self._forget_other_cell()
        super()._open()

    def _close(self) -> None:
        super()._close()
        with self._lock:
            if self._works:
                self._end(self._works[0])
            if self._output is not None or self._said:
                self._draw()

    def _tick(self) -> None:
        with self._lock:
            if not self._stopped.is_set() and (self._works or self._said):
                self._draw()

    def _end(self, work: Work) -> None:
        """Keep the last count and the total time of each kind of outermost work."""
        with self._lock:
            if work.total and self._works and work is self._works[0]:
                seconds = work.elapsed(self._clock())
                if work.what in self._finished:
                    seconds += self._finished.pop(work.what)[0]
                took = in_words(seconds)
                how = took if work.done >= work.total else f"stopped after {took}"
                parts = [f"{work.what} {work.count()}", *work.main_facts(), how]
                self._finished[work.what] = (seconds, ", ".join(parts))
            super()._end(work)

    def _forget(self) -> None:
        self._output = None
        self._drawn: Bundle = {}
        self._drawn_at = -math.inf
        self._said: list[str] = []
        self._finished: dict[str, tuple[float, str]] = {}
        self._cell = self._shell.execution_count

    def _forget_other_cell(self) -> None:
        """Begin an output of its own in every cell."""
        if self._cell != self._shell.execution_count:
            self._forget()

    def _draw(self) -> None:
        """Show what there is now, in place of what was shown before."""
        bundle = self._bundle()
        if bundle == self._drawn:
            return
        if self._output is None:
            show = sys.modules["IPython"].display.display
            self._output = show(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)
        self._drawn, self._drawn_at = bundle, self._clock()

    def _bundle(self) -> Bundle:
        now = self._clock()
        kept = [*self._said, *self._finished_lines()]
        if not self._works:
            return {"text/plain": "\n".join(kept)}
        rows = [ROW.format(indent=0, content=escape(text)) for text in kept]
        rows += [_row(work, level, now) for level, work in enumerate(self._works)]
        return {
            "text/plain": "\n".join([*kept, line(self._works, now)]),
            "text/html": "".join(rows),
        }

    def _finished_lines(self) -> Sequence[str]:
        long = [text for seconds, text in self._finished.values() if seconds >= SHORT]
        if long or not self._finished or self._works:
            return long
        return [max(self._finished.values())[1]]


def _row(work: Work, level: int, now: float) -> str:
    """The work, a bar, the count, the facts and the time left."""
    parts = [work.count(), *work.shown_facts()] if work.total else []
    left = work.left(now) if work.total else None
    if left is not None:
        parts.append(f"{in_words(left)} left")
    bar = BAR.format(done=work.done, total=work.total) if work.total else "…"
    content = f"{escape(printable(work.what))} {bar} {escape(', '.join(parts))}"
    return ROW.format(indent=2 * level, content=content)
