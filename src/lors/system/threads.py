"""A function of many items in threads, without running far ahead of who takes the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["threaded"]

S = TypeVar("S")
T = TypeVar("T")

AHEAD = 256
"""Results that may wait: enough for all threads to be busy, and little memory."""


def threaded(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """The results in the order of the items; what an item raises is raised in its place.

    >>> list(threaded(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor() as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
