"""Timing by turns, so that whatever else the machine does slows all that is compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

__all__ = ["Step", "paired_difference", "paired_ratio", "take_turns", "timed"]

Step = Callable[[], object]


def take_turns(
    steps: Mapping[str, Step], rounds: int, progress: Progress | None = None
) -> dict[str, list[float]]:
    """Seconds of each step, round after round; who goes first alternates.

    One call of each before the first round is not counted: it fills caches.

    Args:
        steps: what to time, by name.
        rounds: how often, at least 2.
        progress: reports long-running work.
    """
    if rounds < 2:
        raise InputError(f"{rounds} timed iteration tells nothing of its deviation: time more")
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    order = list(steps)
    for _ in (progress or Silent()).track(range(rounds), "time by turns", rounds):
        for name in order:
            seconds[name].append(timed(steps[name]))
        order.reverse()
    return seconds


def paired_difference(first: list[float], second: list[float]) -> tuple[float, float]:
    """The mean of first - second, round by round, and its standard error."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return statistics.fmean(differences), statistics.stdev(differences) / len(differences) ** 0.5


def paired_ratio(first: list[float], second: list[float]) -> float:
    """The median of first / second, round by round.

    >>> paired_ratio([2.0, 30.0, 2.2], [1.0, 10.0, 1.1])
    2.0
    """
    return statistics.median(a / b for a, b in zip(first, second, strict=True))


def timed(step: Step) -> float:
    """The seconds that a step takes; on a GPU, between two events, when all of it is done."""
    if torch.cuda.is_available():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()  # what was asked for before does not count
        begin.record()
        step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1000
    begun = time.perf_counter()
    step()
    if torch.backends.mps.is_available():
        torch.mps.synchronize()
    return time.perf_counter() - begun
