"""Promises, and which of them are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lors.system.errors import printable, shortened

__all__ = ["BrokenError", "BrokenPromiseError", "Checks", "Promise", "Report"]


@dataclass(frozen=True)
class Promise:
    """One promise.

    Args:
        name: the promise in a few words.
        kept: whether it is.
        note: what was seen, or how it is broken.
    """

    name: str
    kept: bool
    note: str = ""

    def __str__(self) -> str:
        return (
            f"{'ok' if self.kept else 'FAILED':<8}{self.name}{f': {self.note}' * bool(self.note)}"
        )


@dataclass(frozen=True)
class Report:
    """What a check has found; prints as a line for each promise.

    >>> print(Report("loss 'half'", (Promise("one finite number", True),)))
    loss 'half' keeps its promises
    ok      one finite number

    Args:
        what: was checked.
        promises: in the order of checking.
    """

    what: str
    promises: tuple[Promise, ...]

    @property
    def broken(self) -> list[str]:
        """The names of the promises that are not kept."""
        return [promise.name for promise in self.promises if not promise.kept]

    def __str__(self) -> str:
        some = f"breaks {len(self.broken)} of {len(self.promises)} promises"
        title = f"{self.what} {some if self.broken else 'keeps its promises'}"
        return "\n".join([title, *map(str, self.promises)])

    __repr__ = __str__


class BrokenPromiseError(AssertionError):
    """A thing does not keep all its promises; ``report`` says which.

    Args:
        report: with all promises.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


class BrokenError(Exception):
    """Raised within the check of one promise: how it is broken."""


class Checks:
    """Collects promises.

    Args:
        what: is checked.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.promises: list[Promise] = []

    def check(self, name: str, kept: Callable[[], str | None]) -> bool:
        """Check one promise; whatever the check raises breaks it, and what it returns is noted."""
        try:
            promise = Promise(name, True, kept() or "")
        except BrokenError as broken:
            promise = Promise(name, False, str(broken))
        except Exception as error:  # whatever the thing under test raises
            text = f"{type(error).__name__}: {error}"
            promise = Promise(name, False, shortened(printable(text), 300))
        self.promises.append(promise)
        return promise.kept

    def report(self) -> Report:
        """All promises.

        Raises:
            BrokenPromiseError: one is not kept.
        """
        report = Report(self.what, tuple(self.promises))
        if report.broken:
            raise BrokenPromiseError(report)
        return report
