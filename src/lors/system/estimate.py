"""What work costs at a size that may be too large to try: measured, or carried on from less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch

from lors.system.counting import Counts, counted
from lors.system.memory import available_memory, forget_peak_memory, peak_memory
from lors.system.progress import Progress, Silent
from lors.system.timing import Step, timed

__all__ = ["Cost", "estimate", "measured"]

PATIENCE = 10.0
"""Seconds up to which work is done in full."""
SHARE = 0.5
"""Of the memory that is available, what work done in full may need."""


@dataclass(frozen=True)
class Cost:
    """What a piece of work takes.

    Args:
        seconds: its time.
        memory: bytes that the process holds at most.
        whole: whether it was measured at its full size.
        counts: what it would take of any device, if that was counted.
    """

    seconds: float
    memory: float
    whole: bool = True
    counts: Counts | None = None

    def carried_on(self, size: float, other: Cost, other_size: float, full: float) -> Cost:
        """On the straight line through the costs of two sizes, at a third.

        A cost neither falls nor grows faster than its size: what measurements say beyond that is
        the noise of a busy machine, which carrying on would multiply.
        """
        far, growth = (full - size) / (other_size - size), other_size / size

        def line(less: float, more: float) -> float:
            return less + (min(max(less, more), growth * less) - less) * far

        seconds, memory = line(self.seconds, other.seconds), line(self.memory, other.memory)
        counts = None
        if self.counts is not None and other.counts is not None:  # without noise
            each = zip(self.counts, other.counts, strict=True)
            counts = Counts(*(less + (more - less) * far for less, more in each))
        return Cost(seconds, memory, whole=False, counts=counts)


def measured(step: Step, device: torch.device) -> Cost:
    """What a step costs: the faster of two, which a busy machine slowed less, and their peak.

    A third is counted, which takes longer.

    Args:
        step: what to do; who calls has done it once before.
        device: whose memory counts.
    """
    forget_peak_memory(device)
    seconds = min(timed(step), timed(step))
    return Cost(seconds, peak_memory(device), counts=counted(step))


def estimate(
    work: Callable[..., Cost],
    small: Sequence[float],
    full: Sequence[float],
    device: torch.device,
    progress: Progress | None = None,
    what: str = "measure",
) -> Cost:
    """What work costs at its full size.

    It is measured small and twice as large, in each of its sizes, and carried on in straight lines;
    if it then seems affordable, it is also done in full, and only that counts.

    Args:
        work: takes its sizes, e.g. steps and pairs, does it and says what it cost.
        small: the least sizes that work.
        full: the sizes to know the cost of.
        device: whose memory counts.
        progress: reports long-running work.
        what: the work in words, for the progress.

    >>> cpu = torch.device("cpu")
    >>> estimate(lambda n: Cost(n / 1000, 1e6), [1], [4], cpu)
    Cost(seconds=0.004, memory=1000000.0, whole=True, counts=None)
    >>> estimate(lambda n, m: Cost(5 + n * m, 1e6 * m), [1, 1], [100, 3], cpu)
    Cost(seconds=305.0, memory=3000000.0, whole=False, counts=None)
    """
    progress = progress or Silent()
    axes = [sorted({s, min(2 * s, f)}) for s, f in zip(small, full, strict=True)]
    corners = list(product(*axes))
    costs = {sizes: work(*sizes) for sizes in progress.track(corners, what, len(corners))}
    if tuple(full) in costs:
        return costs[tuple(full)]
    for axis in reversed(range(len(axes))):
        costs = _collapsed(costs, axes[axis], full[axis])
    (cost,) = costs.values()
    affordable = cost.memory < SHARE * available_memory(device) and cost.seconds < PATIENCE
    if affordable:
        for sizes in progress.track([full], f"{what} in full", 1):
            cost = work(*sizes)
    return cost


def _collapsed(
    costs: dict[tuple[float, ...], Cost], sizes: Sequence[float], full: float
) -> dict[tuple[float, ...], Cost]:
    """The costs at the full size of the last axis, by the sizes of the axes before it."""
    if len(sizes) == 1:
        return {key[:-1]: cost for key, cost in costs.items()}
    less, more = sizes
    larger = {key[:-1]: cost for key, cost in costs.items() if key[-1] == more}
    return {
        key[:-1]: cost.carried_on(less, larger[key[:-1]], more, full)
        for key, cost in costs.items()
        if key[-1] == less
    }
