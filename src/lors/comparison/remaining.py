"""What remains of a method's gain under the controls."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lors.comparison.controls import BASELINE, TEACHERS
from lors.comparison.table import Table, axes
from lors.comparison.variant import CONTROLS, under_control
from lors.config import find_method

if TYPE_CHECKING:
    from lors.comparison.results import Record, Reference

__all__ = ["remaining", "remaining_lines"]


def remaining(
    table: Table, records: Sequence[Record], references: Sequence[Reference]
) -> list[list[str]]:
    """The table of what remains, as text, its head first; empty where nothing was controlled."""
    across, along = axes(table)
    sizes = [v.label for v in getattr(table, along) if v.control is None and not v.evaluate]
    if not any(variant.control for variant in getattr(table, along)):
        return []
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        place = (record.row, record.column) if along == "rows" else (record.column, record.row)
        if record.mean is not None:
            found.setdefault(place, []).append(record.mean)
    means = {place: statistics.fmean(values) for place, values in found.items()}
    full = {
        size: (r.recall.mean.mean, r.taught.mean.mean if r.taught else None)
        for r in references
        for size in getattr(r, along)
    }
    methods = [variant.label for variant in getattr(table, across)]
    return remaining_lines(means, sizes, methods, full)


def remaining_lines(
    means: Mapping[tuple[str, str], float],
    sizes: Sequence[str],
    methods: Sequence[str],
    full: Mapping[str, tuple[float, float | None]],
) -> list[list[str]]:
    """A line for each size and method: its gain over random pairs, what remains, and its lead.

    >>> means = {("9 pairs", "Random"): 10.0, ("9 pairs", "LoRS (wBCE)"): 30.0,
    ...          ("9 pairs, S = I", "LoRS (wBCE)"): 20.0, ("9 pairs", "Random, teachers' S"): 15.0}
    >>> head, line = remaining_lines(means, ["9 pairs"], ["LoRS (wBCE)"], {"9 pairs": (35.0, None)})
    >>> dict(zip(head, line))["with S = I"], dict(zip(head, line))["over Random, teachers' S"]
    ('+10.0 (50 %)', '+15.0 (75 %)')

    Args:
        means: mean recalls by size and method; those of controls by the label of their row.
        sizes: labels.
        methods: labels; random pairs and the controls among them are left out.
        full: what the full data reaches at each size, and what it reaches with teachers.
    """
    random = find_method(BASELINE).label
    teachers = [find_method(name).label for name in TEACHERS]
    head = ["", "mean recall", "over random pairs", *(f"over {label}" for label in teachers)]
    head += [f"with {label}" for label in CONTROLS.values()]
    head += ["over full data", "over taught full data"]
    lines = [head]
    for size in sizes:
        for method in methods:
            mean, start = means.get((size, method)), means.get((size, random))
            if method in (random, *teachers) or mean is None or start is None:
                continue
            gains = [_difference(mean, means.get((size, label))) for label in teachers]
            gains += [
                _difference(means.get((under_control(size, control), method)), start)
                for control in CONTROLS
            ]
            leads = [_difference(mean, each) for each in full.get(size, (None, None))]
            lines.append(
                [
                    f"{size}, {method}" if len(sizes) > 1 else method,
                    f"{mean:.1f}",
                    f"{mean - start:+.1f}",
                    *(_share(gain, mean - start) for gain in gains),
                    *("–" if lead is None else f"{lead:+.1f}" for lead in leads),
                ]
            )
    return lines


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _share(gain: float | None, whole: float) -> str:
    """A gain, and how much that is of another; below nothing, no share makes sense."""
    if gain is None:
        return "–"
    return f"{gain:+.1f} ({100 * gain / whole:.0f} %)" if whole > 0 else f"{gain:+.1f}"
