"""What long work reports while it runs, without knowing who listens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

__all__ = ["Progress", "Silent"]

T = TypeVar("T")


class Progress(Protocol):
    """Someone to tell about long work."""

    def track(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        """Pass the items through while showing how many of ``total`` are done."""
        ...

    def note(self, **facts: Any) -> None:
        """Show these facts beside the work under way, e.g. ``loss=0.93``."""
        ...

    def say(self, text: str) -> None:
        """Show a sentence that the user should know."""
        ...


class Silent:
    """Shows nothing."""

    def track(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        return iter(items)

    def note(self, **facts: Any) -> None:
        pass

    def say(self, text: str) -> None:
        pass
