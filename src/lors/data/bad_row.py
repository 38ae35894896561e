"""The error of one row that cannot be used."""

from __future__ import annotations

from lors.system.errors import InputError

__all__ = ["BadRowError"]


class BadRowError(InputError):
    """A row cannot be used. The message says which, what is wrong with it, and what to do.

    Args:
        message: a sentence.
        kind: what is wrong, in the plural, as a report counts it: ``"missing files"``.
        rows: how many rows it is about.
    """

    def __init__(self, message: str, kind: str = "bad rows", rows: int = 1) -> None:
        super().__init__(message)
        self.kind, self.rows = kind, rows
