"""One line of a benchmark: ours and a plain reference, timed by turns in one process."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lors.system.timing import Step, paired_ratio, take_turns

__all__ = ["Ratio", "median_seconds", "ratio", "side_by_side"]


@dataclass(frozen=True)
class Ratio:
    """How much faster ours is.

    Args:
        case: what was timed, with its sizes.
        ours: seconds, the median of all rounds.
        reference: seconds of the plain implementation.
        faster: the median of reference / ours, round by round.
        passes: what ours costs in plain forward and backward passes of the same network on the same
            batch, where there is a network.
        reference_passes: the same of the reference.
        floor: seconds of that one pass.
        more: other figures, by name: an error, bytes, a speed.
    """

    case: str
    ours: float
    reference: float
    faster: float
    passes: float | None = None
    reference_passes: float | None = None
    floor: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)


def side_by_side(
    case: str,
    ours: Step,
    reference: Step,
    rounds: int,
    *,
    floor: Step | None = None,
    batches: int = 1,
    more: Mapping[str, float] | None = None,
) -> Ratio:
    """Time ours and the reference by turns.

    Args:
        case: what is timed, with its sizes.
        ours: does the work once.
        reference: does the same work once.
        rounds: how often each is timed.
        floor: one plain forward and backward pass of the same network on the same batch.
        batches: how many batches the work goes through; passes are counted per batch.
        more: figures to report beside the times.
    """
    steps = {"ours": ours, "reference": reference}
    seconds = take_turns(steps if floor is None else {**steps, "floor": floor}, rounds)
    return ratio(
        case, seconds["ours"], seconds["reference"], seconds.get("floor"), batches, more or {}
    )


def ratio(
    case: str,
    ours: list[float],
    reference: list[float],
    floor: list[float] | None = None,
    batches: int = 1,
    more: Mapping[str, float] = MappingProxyType({}),
) -> Ratio:
    """The line of times that were taken by turns; see ``side_by_side``."""

    def passes(each: list[float]) -> float | None:
        return None if floor is None else paired_ratio(each, floor) / batches

    return Ratio(
        case,
        statistics.median(ours),
        statistics.median(reference),
        paired_ratio(reference, ours),
        passes(ours),
        passes(reference),
        None if floor is None else statistics.median(floor),
        dict(more),
    )


def median_seconds(step: Step, rounds: int) -> float:
    """The median time of one step, to report beside a ratio."""
    return statistics.median(take_turns({"step": step}, rounds)["step"])
