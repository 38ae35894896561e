"""The work under way: how far it is, and how long it will still take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lors.system.errors import printable

__all__ = ["SHORT", "Clock", "Work", "duration", "in_words", "line"]

Clock = Callable[[], float]
"""Gives the time in seconds."""

SHORT = 1.0
"""Work that takes fewer seconds than this is not worth a line that stays."""
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
        others = (name for name in self.facts if name not in FIRST)
        return self.main_facts() + [self._shown_fact(name) for name in others]

    def main_facts(self) -> list[str]:
        """The loss and the recall in words, where they are known."""
        return [self._shown_fact(name) for name in FIRST if name in self.facts]

    def _shown_fact(self, name: str) -> str:
        return f"{name.replace('_', ' ')} {_value(self.facts[name])}"


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725.4), duration(None)
    ('1:02:05', '-:--:--')
    """
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def in_words(seconds: float) -> str:
    """A time as one says it.

    >>> [in_words(seconds) for seconds in (0.34, 12.3, 72, 3725, 200_000)]
    ['0.3 s', '12 s', '1 min 12 s', '1 h 2 min', '55 h 33 min']
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def line(works: Sequence[Work], now: float, end: str = "") -> str:
    """Works, each within the one before it, in a line: how far they are, what they found, the end.

    Args:
        works: at least one.
        now: the time.
        end: how the work ended; default: how long the first one will still take.
    """
    parts = [f"{work.what} {work.count()}".rstrip() for work in works]
    for work in works:
        parts += work.shown_facts()
    left = works[0].left(now) if works[0].total else None
    if end:
        parts.append(end)
    elif left is not None:
        parts.append(f"{duration(left)} left")
    return ", ".join(parts)


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else printable(str(value))
