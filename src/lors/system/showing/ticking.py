"""Works that are shown again and again by a thread, as a single item may take hours."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context
from typing import Any

from lors.system.showing.work import Clock, Work
from lors.system.showing.works import Works

__all__ = ["Ticking"]


class Ticking(Works):
    """Calls ``_tick`` now and then while it runs; subclasses write or draw there.

    Counting an item costs a microsecond, however often the work is shown.

    Args:
        interval: seconds between two ticks.
        clock: gives the time in seconds.
    """

    def __init__(self, interval: float, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._interval = interval
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, **facts: Any) -> None:
        """See ``lors.system.progress.Progress``."""
        with self._lock:
            super().note(**facts)

    def _open(self) -> None:
        self._stopped = threading.Event()
        # The context says to which cell of a notebook an output belongs.
        run, arguments = copy_context().run, (self._run, self._stopped)
        self._thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._thread.start()

    def _close(self) -> None:
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1)  # no longer: a signal handler may hold what it waits for

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._interval):
            self._tick()

    def _tick(self) -> None:
        """Show the work under way, if it is time for that."""

    def _begin(self, what: str, total: int, done: int) -> Work:
        with self._lock:
            return super()._begin(what, total, done)

    def _advance(self, work: Work) -> None:
        with self._lock:
            super()._advance(work)

    def _end(self, work: Work) -> None:
        with self._lock:
            super()._end(work)
