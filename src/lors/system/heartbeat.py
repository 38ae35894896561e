"""Signs of life: a wait for another process ends when that process has shown none for too long.

Slow work is no reason to give up, so the length of a wait says nothing. A process that others may
wait for gives a sign now and then, from a thread of its own, and whoever waits looks for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from lors.system.errors import InputError

__all__ = ["TIMEOUT", "RankWatch", "Silence", "interval", "timeout"]

TIMEOUT = "LORS_TIMEOUT"
"""Seconds for which a process waits for one that shows no sign of life, or, in the middle of a
step, does not answer; by default half an hour. That a process has ended is noticed at once."""

CONNECT = 5
"""Seconds to connect to the store, and for its answers."""

CONTINUES = "the same command goes on from what was saved"


def timeout() -> float:
    """The seconds of ``LORS_TIMEOUT``.

    Raises:
        InputError: it is not a number of seconds.
    """
    seconds = os.environ.get(TIMEOUT, "1800")
    try:
        if timedelta(seconds=float(seconds)) > timedelta():
            return float(seconds)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{TIMEOUT}={seconds!r} is not a number of seconds: set it to 600, say")


def interval() -> float:
    """Seconds between two signs of life; some may be missed before the timeout."""
    return min(timeout() / 20, 30.0)


class Silence:
    """For how long a sign has not changed, in time in which this process itself was running.

    No two clocks are compared, and a process that was stopped together with the others, as
    schedulers and laptops do, does not blame them afterwards.

    >>> silence = Silence()
    >>> silence.seconds("a"), silence.seconds("b")
    (0.0, 0.0)
    """

    def __init__(self) -> None:
        self._sign: object = None
        self._looked: float | None = None
        self._longest = 2 * interval()
        self._seconds = 0.0

    def seconds(self, sign: object) -> float:
        """Look at the sign; to be called every ``interval`` or so."""
        now = time.monotonic()
        if self._looked is None or sign != self._sign:
            self._seconds = 0.0
        else:
            self._seconds += min(now - self._looked, self._longest)
        self._sign, self._looked = sign, now
        return self._seconds


@dataclass(eq=False)
class _Wait:
    """One wait of this rank: for whom, and how long each rank has been silent since it began."""

    whom: str
    silent: dict[int, float] = field(default_factory=dict)


class RankWatch:
    """Ends this process when it waits for a rank that shows no sign of life.

    Signs are counters in the store through which ranks find each other. The process ends itself
    instead of raising, because the wait is inside torch, where nothing can interrupt it; torch's
    own timeouts, which raise, are the same or longer.
    """

    def __init__(self) -> None:
        self._wait: _Wait | None = None
        self._signs: dict[int, int] = {}
        self._over = threading.Event()
        self._beats: threading.Thread | None = None
        self._own, self._count, self._limit, self._every = 0, 1, 0.0, 0.0

    @contextmanager
    def on(self, own: int, count: int) -> Iterator[None]:
        """Watch for the length of the block; this is rank ``own`` of ``count``."""
        self._own, self._count = own, count
        self._limit, self._every = timeout(), interval()
        self._over, self._beats, self._signs = threading.Event(), None, {}
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._over.set()
            watch.join()
            if self._beats is not None:
                self._beats.join(CONNECT + 1)  # inside torch, it would disturb the end of Python

    def beat(self, start: str) -> None:
        """Show signs of life from now on, under the name of this start of the ranks."""
        self._beats = threading.Thread(target=self._beat, args=(start,), daemon=True)
        self._beats.start()

    @contextmanager
    def waiting(self, whom: str) -> Iterator[None]:
        """The block waits for others."""
        before, self._wait = self._wait, _Wait(whom)
        try:
            yield
        finally:
            self._wait = before

    def wait_for(self, whom: str) -> None:
        """The wait under way is now for this one."""
        if self._wait is not None:
            self._wait.whom = whom

    def whom(self) -> str:
        """Who is waited for."""
        return "another process" if self._wait is None else self._wait.whom

    def complaint(self) -> str:
        """A sentence on who has been silent in the wait under way, or nothing."""
        return "" if self._wait is None else self._complaint(self._wait)

    def _complaint(self, wait: _Wait) -> str:
        long = {rank: seconds for rank, seconds in wait.silent.items() if seconds > 4 * self._every}
        if not long:
            return ""
        longest = max(long, key=long.__getitem__)
        if self._own not in long:
            who = f"rank {longest} has shown no sign of life"
        elif self._beats is None:
            who = f"nothing has been heard of {wait.whom}"
        else:  # not even this rank's own signs are seen
            where = ":".join(os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))
            who = f"torchrun or rank 0, which keeps the store at {where}, has not answered"
        return (
            f"{who} for {long[longest]:.0f} s ({TIMEOUT}): see whether its machine or process is "
            f"stopped; {CONTINUES}"
        )

    def _beat(self, start: str) -> None:
        """Count up under this rank's key, and, if somebody is waited for, look at the others'."""
        store: PrefixStore | None = None
        while not self._over.is_set():
            try:
                store = store or _connected(start)
                store.add(str(self._own), 1)
                if self._wait is not None:
                    self._signs = {rank: store.add(str(rank), 0) for rank in range(self._count)}
            except RuntimeError:
                store = None  # connect again: it may have been the network
            self._over.wait(self._every)

    def _watch(self) -> None:
        """Look at the signs, if somebody is waited for."""
        wait: _Wait | None = None
        silence: list[Silence] = []
        while not self._over.wait(self._every):
            if self._wait is None or self._wait is not wait:
                wait, silence = self._wait, [Silence() for _ in range(self._count)]
                continue
            signs = self._signs
            wait.silent = {
                rank: silence[rank].seconds(signs.get(rank)) for rank in range(self._count)
            }
            if max(wait.silent.values()) > self._limit and self._wait is wait:
                self._give_up(wait)

    def _give_up(self, wait: _Wait) -> None:
        who = f"rank {self._own}: " if self._own else ""
        threading.Timer(5, os._exit, (1,)).start()  # should nobody read the other end of stderr
        os.write(2, f"{who}error: {self._complaint(wait)}\n".encode())
        os._exit(1)


def _connected(start: str) -> PrefixStore:
    """The signs of this start, by a connection on which no other call can be in the way."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(host, port, None, False, timedelta(seconds=CONNECT))
    return PrefixStore(f"{start}/alive", store)
