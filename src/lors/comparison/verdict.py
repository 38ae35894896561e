"""What a comparison found, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from lors.comparison.render import Entry
from lors.comparison.results import Filled, Reference, lines

__all__ = ["verdict"]


def verdict(filled: Filled) -> str:
    """Who is ahead in the first contest, by how much, and how near the full data.

    Empty where nothing competes, or nothing has a result.
    """
    table = filled.table
    fast = table.measure == "seconds"
    grid = lines(table, filled.records, "seconds_per_iteration" if fast else "mean")
    if table.best_in == "column":
        contest, names = table.columns[0].label, [line.label for line in grid]
        entries = [line.entries[0] for line in grid]
    else:
        contest, names = table.rows[0].label, [column.label for column in table.columns]
        entries = list(grid[0].entries)
    known = [
        (e.mean, name, e) for name, e in zip(names, entries, strict=True) if e.mean is not None
    ]
    if len(known) < 2:
        return ""
    mean, name, entry = (min if fast else max)(known, key=lambda each: each[0])
    share = "" if fast else _of_full_data(mean, filled.references, contest)
    return f"{contest}: {name} {_verb(fast, entry)} {entry.text()}{share}{_doubt(entry)}."


def _verb(fast: bool, entry: Entry) -> str:
    who = "is best with" if entry.best else "is ahead with"
    return f"{who} seconds per iteration of" if fast else f"{who} a mean recall of"


def _of_full_data(mean: float, references: Sequence[Reference], contest: str) -> str:
    here = [r for r in references if contest in (*r.rows, *r.columns)]
    if len({r.mean for r in here}) != 1 or not (full := here[0].mean):
        return ""
    chances = here[0].chances
    least = "" if chances is None else f", where chance is {chances.mean:.1f}"
    return f", {100 * mean / full:.0f} % of the full data's {full:.1f}{least}"


def _doubt(entry: Entry) -> str:
    if entry.best:
        return ""
    return "; one seed shows no deviation" if entry.deviation is None else "; deviations overlap"
