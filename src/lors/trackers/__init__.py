"""Trackers: programs outside that keep and show the course of a run, one file each."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from lors.system.errors import InputError, choose
from lors.trackers.tensorboard import TensorBoard
from lors.trackers.tracker import Tracker
from lors.trackers.wandb import WeightsAndBiases

__all__ = ["TRACKERS", "Tracker", "check_trackers"]

TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""By the name of the package that each needs, which is also that of the extra that brings it."""


def check_trackers(names: Iterable[str]) -> None:
    """Refuse unknown trackers, and known ones whose package is not installed.

    Raises:
        InputError: says what to install.
    """
    for name in names:
        choose(TRACKERS, name, "tracker")
        found = find_spec(name)
        if found is None or found.origin is None:  # a mere folder of that name has no origin
            raise InputError(
                f"tracker {name!r} needs the package {name}: pip install 'lors[{name}]'"
            )
