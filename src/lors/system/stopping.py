"""Signals that ask the program to end wait for the end of a step, so that it can be saved."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["INTERRUPTED", "HungUp", "Terminated", "listening", "quitting", "stop_now", "unbroken"]

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
INTERRUPTED = "Interrupted. The same command continues where it stopped."
NOTICE = b"\nFinishing this step and saving. Once more to stop at once.\n"


class Terminated(KeyboardInterrupt):
    """SIGTERM; like KeyboardInterrupt, it passes everything that catches errors."""

    code = 143
    """The exit code: 128 more than the number of the signal, as in shells."""


class HungUp(Terminated):
    """SIGHUP: the terminal or the ssh session was closed."""

    code = 129


ENDS: dict[int, type[KeyboardInterrupt]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}


def stop_now(number: int, frame: FrameType | None) -> None:
    """A signal handler that ends the program by an exception, so that ``finally`` runs."""
    _leave_lost_terminal()
    raise ENDS.get(number, HungUp)


@contextmanager
def listening() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the program by an exception during the block."""
    with _handled_by(stop_now):
        yield


@contextmanager
def quitting(tidy: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the process at once during the block.

    Args:
        tidy: called before, to leave the terminal as it was.
    """

    def quit_now(number: int, frame: FrameType | None) -> None:
        def leave() -> None:
            try:
                os.write(2, f"{INTERRUPTED}\n".encode())
            finally:
                os._exit(128 + number)

        threading.Timer(1, leave).start()  # in case it waits for a lock
        _leave_lost_terminal()
        tidy()
        leave()

    with _handled_by(quit_now):
        yield


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle signals during the block.

    One that is ignored, as SIGHUP is by nohup, stays so. Outside the main thread, which no signal
    reaches, nothing changes.
    """
    heard = [s for s in SIGNALS if signal.getsignal(s) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        heard = []
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _leave_lost_terminal() -> None:
    """Write to nowhere instead of a terminal that was closed: each print would be an error."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)


@contextmanager
def unbroken() -> Iterator[Callable[[], bool]]:
    """Let a block come to its end before SIGINT, SIGTERM or SIGHUP ends the program.

    Yields:
        Tells whether the program is to end, so that the block can save what it did.

    Raises:
        KeyboardInterrupt: after the block, if a signal came during it; at once at the second one.
            It is Terminated for SIGTERM and HungUp for SIGHUP.
    """
    received: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if received:
            stop_now(number, frame)
        received.append(number)
        _leave_lost_terminal()
        os.write(2, NOTICE)

    with _handled_by(wait):
        yield lambda: bool(received)
    if received:
        stop_now(received[0], None)
