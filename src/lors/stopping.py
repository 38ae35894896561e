"""SIGINT and SIGTERM wait for the end of a step, so that what it did can be saved."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "stop_now", "unbroken"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = b"\nFinishing this step and saving. Once more to stop at once.\n"


class Terminated(KeyboardInterrupt):
    """SIGTERM; like KeyboardInterrupt, it passes everything that catches errors."""


def stop_now(number: int, frame: FrameType | None) -> None:
    """A signal handler that ends the program by an exception, so that ``finally`` runs."""
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def unbroken() -> Iterator[Callable[[], bool]]:
    """Let a block come to its end before SIGINT or SIGTERM ends the program.

    A signal that is ignored stays so. Outside the main thread, which no signal reaches, nothing
    changes.

    Yields:
        Tells whether the program is to end, so that the block can save what it did.

    Raises:
        KeyboardInterrupt: after the block, if a signal came during it; at once at the second one.
    """
    received: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if received:
            stop_now(number, frame)
        received.append(number)
        os.write(2, NOTICE)

    heard = [s for s in SIGNALS if signal.getsignal(s) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        heard = []
    before = {number: signal.signal(number, wait) for number in heard}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        stop_now(received[0], None)
