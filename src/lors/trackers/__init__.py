"""Trackers: programs outside that keep and show the course of a run, one file each."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from lors.config import names
from lors.system.errors import InputError
from lors.system.registry import Registry
from lors.trackers.tracker import Tracker

__all__ = ["TRACKERS", "Tracker", "check_trackers"]

TRACKERS: Registry[type[Tracker]] = names.TRACKERS


def check_trackers(chosen: Iterable[str]) -> None:
    """Refuse unknown trackers, and known ones whose package is not installed.

    Raises:
        InputError: says what to install.
    """
    for name in chosen:
        package = TRACKERS.choose(name).package
        found = find_spec(package) if package else None
        here = found is not None and found.origin is not None  # a mere folder has no origin
        if package and not here:
            raise InputError(
                f"tracker {name!r} needs the package {package}: pip install 'lors[{package}]'"
            )
