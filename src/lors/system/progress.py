"""How long-running work reports its progress, whoever shows it: a terminal, a log, or nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

__all__ = ["Progress", "Silent"]

T = TypeVar("T")


class Progress(Protocol):
    """Reports long-running work; pass an object with these three methods to see it your way.

    >>> class Titles:
    ...     def track(self, items, what, total, done=0):
    ...         print(f"{what}: {total}")
    ...         return iter(items)
    ...     def note(self, **facts): ...
    ...     def say(self, text): ...
    >>> import lors
    >>> made = lors.distill(images, texts, pairs=9, progress=Titles(), **quick, seed=1)
    train experts: 0
    wait for other processes: 0
    distil: 2
    """

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        """Pass the items through and show how many of them are done.

        A track inside another one shows how far the outer one's current item is.

        Args:
            items: what to do, one after the other.
            what: the work in words, e.g. ``"train experts"``.
            total: how many items there are, with those done before.
            done: how many were done before, by a run that this one continues.
        """
        ...

    def note(self, **facts: Any) -> None:
        """Show these facts beside the current work, e.g. ``loss=0.93``."""
        ...

    def say(self, text: str) -> None:
        """Show a sentence that the user should read, e.g. a warning."""
        ...


class Silent:
    """Shows nothing.

    >>> list(Silent().track("ab", "letters", total=2))
    ['a', 'b']
    """

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        return iter(items)

    def note(self, **facts: Any) -> None:
        pass

    def say(self, text: str) -> None:
        pass
