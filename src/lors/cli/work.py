"""The work under way: how far it is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lors.system.errors import printable

__all__ = ["Clock", "Work", "Works", "duration"]

T = TypeVar("T")

Clock = Callable[[], float]
"""Gives the time in seconds."""

FIRST = ("loss", "recall")
"""The facts to show first; where there is no room for all, the others are left out."""


@dataclass(eq=False)
class Work:
    """One kind of work.

    Args:
        what: the work in words.
        total: how many items it has; 0 if they cannot be counted.
        done: how many of them are done.
        begun: when it began.
    """

    what: str
    total: int
    done: int
    begun: float
    facts: dict[str, Any] = field(default_factory=dict)
    inner: Work | None = None

    def __post_init__(self) -> None:
        self._before: float = self.done
        self._moved = self.begun

    def advance(self, now: float) -> None:
        """Count one more item as done."""
        self.done += 1
        self._moved, self.inner = now, None

    def enter(self, inner: Work) -> None:
        """Take ``inner`` as the current item, until that is counted as done."""
        self.inner = inner
        self._before += inner.done / inner.total  # what was done before costs no time now

    def elapsed(self, now: float) -> float:
        """Seconds since it began."""
        return now - self.begun

    def left(self, now: float) -> float | None:
        """Seconds until it ends, if the rest takes as long as what was done; None if unknown.

        >>> work = Work("distil", total=10, done=0, begun=0)
        >>> for second in (3, 6):
        ...     work.advance(second)
        >>> work.left(7)
        23.0
        """
        reached, moved = self._reached()
        if reached <= self._before:
            return None
        each = (moved - self.begun) / (reached - self._before)
        expected = each * (self.total - reached) - (now - moved)
        # An item may take longer than those before it, but those after it are still to come.
        return max(expected, each * (self.total - self.done - 1), 0.0)

    def _reached(self) -> tuple[float, float]:
        """How many items are done, with the done part of the current one, and since when."""
        if self.inner is None:
            return self.done, self._moved
        reached, moved = self.inner._reached()
        return self.done + reached / self.inner.total, max(self._moved, moved)

    def count(self) -> str:
        """How much is done, e.g. ``3/20``; empty if it cannot be counted."""
        return f"{self.done}/{self.total}" if self.total else ""

    def shown_facts(self) -> list[str]:
        """The facts in words, the most important first.

        >>> Work("distil", 10, 0, 0, {"rate_image": 0.1, "loss": 0.8123}).shown_facts()
        ['loss 0.812', 'rate image 0.1']
        """
        names = [name for name in FIRST if name in self.facts]
        names += [name for name in self.facts if name not in FIRST]
        return [f"{name.replace('_', ' ')} {_value(self.facts[name])}" for name in names]


class Works:
    """Keeps track of the work under way; subclasses show it.

    Args:
        clock: gives the time in seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._works: list[Work] = []  # each within the one before it

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        """See ``lors.system.progress.Progress``."""
        if done >= total:
            yield from items
            return
        work = self._begin(what, total, done)
        try:
            for item in items:
                yield item
                self._advance(work)
        finally:
            self._end(work)

    def note(self, **facts: Any) -> None:
        """See ``lors.system.progress.Progress``."""
        if self._works:
            self._works[-1].facts |= facts

    def doing(self, what: str) -> None:
        """Show what is happening until the next call of ``doing`` or ``track``."""
        self._forget_uncounted()
        self._begin(what, 0, 0)

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


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725.4), duration(None)
    ('1:02:05', '-:--:--')
    """
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else printable(str(value))
