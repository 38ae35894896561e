"""How many of a CPU's cores one network uses, so that small ones do not wait for each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from threading import Event
from typing import TypeVar

import torch

__all__ = ["check_wanted", "fitted_threads", "side_by_side", "threads_for"]

S = TypeVar("S")
T = TypeVar("T")

SET_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Whoever sets one of these has chosen."""
GRAIN = 2**23
"""Multiplications that an operation must have for each thread, to be worth waking it up."""

_places = 1
_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)


def threads_for(work: float, cores: int) -> int:
    """How many threads operations of this size are worth: by size, never by the clock.

    The number of threads can change the last bits of matrix products, so it must be the same
    whenever a run is repeated on a machine.

    Args:
        work: multiplications in an average operation of a network.
        cores: how many threads there may be.

    >>> threads_for(1e6, cores=4), threads_for(1e9, cores=4)
    (1, 4)
    """
    return max(1, min(cores, int(work / GRAIN)))


@contextmanager
def fitted_threads(work: float) -> Iterator[None]:
    """Run operations of this size with as many threads as they are worth, unless the user chose.

    Cores that are left over are for ``side_by_side``.

    Args:
        work: multiplications in an average operation of a network.
    """
    global _places
    cores, before = torch.get_num_threads(), _places
    if any(name in os.environ for name in SET_BY_USER):
        yield
        return
    threads = threads_for(work, cores)
    torch.set_num_threads(threads)
    _places = before * (cores // threads)
    try:
        yield
    finally:
        torch.set_num_threads(cores)
        _places = before


def side_by_side(work: Callable[[S], T], items: Sequence[S]) -> Generator[T, None, None]:
    """The results in the order of the items, as many at a time as ``fitted_threads`` left cores.

    Each item is worked on in a thread of its own, with the bits that it has alone. If the caller
    stops early, by Ctrl-C for example, what runs ends where it calls ``check_wanted``.

    Args:
        work: must draw from torch's global generator only within ``global_seed``.
        items: to work on.

    >>> list(side_by_side(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if _places == 1 or len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(_places) as pool:
        todo, given_up = iter(items), Event()

        def begin(item: S) -> Future[T]:
            context = copy_context()
            context.run(_given_up.set, given_up)
            return pool.submit(context.run, work, item)

        running = [begin(item) for item in islice(todo, _places)]
        try:
            while running:
                yield running.pop(0).result()
                running += [begin(item) for item in islice(todo, 1)]
        finally:
            given_up.set()
            for future in running:
                future.cancel()


def check_wanted() -> None:
    """End work of ``side_by_side`` whose caller has stopped.

    Raises:
        CancelledError: nobody waits for the result any more.
    """
    event = _given_up.get()
    if event is not None and event.is_set():
        raise CancelledError
