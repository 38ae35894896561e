"""Stands in until progress has moved here."""

from lors.system.progress import Progress, Silent

__all__ = ["as_progress"]


def as_progress(value: Progress | bool | None) -> Progress:
    return Silent() if value is None or isinstance(value, bool) else value
