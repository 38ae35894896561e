"""What methods reached in a comparison, averaged over seeds and grouped by what can be compared."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lors.comparison.cell import cell_name
from lors.comparison.results import Record, Reference
from lors.comparison.table import Table
from lors.evaluation.statistic import plus_minus
from lors.files.artifacts import open_artifact
from lors.runs.folders import SET
from lors.system.errors import LorsError

__all__ = ["Group", "Reached", "groups_of"]

SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}
"""Bytes of a number by the name of its type in a file."""


@dataclass(frozen=True)
class Reached:
    """What a method reached in one contest, over its seeds.

    Args:
        method: label.
        contest: label of what it is compared within, such as ``100 pairs``.
        budget: storage in pairs that the label names; None: it names none.
        mean: recall in percent.
        deviation: over seeds; None for a single one.
        storage: in plain pairs.
        size: of images, texts and similarity in bytes; None where a set is not there any more.
        seconds: of distillation; 0 for selected pairs.
    """

    method: str
    contest: str
    budget: int | None
    mean: float
    deviation: float | None
    storage: float
    size: float | None
    seconds: float

    def recall(self) -> str:
        return plus_minus(self.mean, self.deviation)


@dataclass(frozen=True)
class Group:
    """Contests whose recalls compare: on the same data, networks and protocol.

    Args:
        title: what they have in common, if the comparison has several groups.
        reached: by all methods in all of these contests.
        levels: recalls to compare with by name: of the full data, and of chance.
    """

    title: str
    reached: list[Reached]
    levels: dict[str, float]

    def methods(self) -> list[str]:
        """Best first."""
        best: dict[str, float] = {}
        for each in self.reached:
            best[each.method] = max(each.mean, best.get(each.method, 0.0))
        return sorted(best, key=lambda method: -best[method])


def groups_of(
    table: Table, records: Sequence[Record], references: Sequence[Reference], folder: Path
) -> list[Group]:
    """The results of a comparison by what can be compared, each averaged over its seeds."""
    by_row = table.best_in == "row"
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.mean is not None:
            contest, method = (record.row, record.column)[:: 1 if by_row else -1]
            cells.setdefault((contest, method), []).append(record)
    found: dict[str, list[Reached]] = {}
    for (contest, method), runs in cells.items():
        title, budget = _budget(contest)
        found.setdefault(title, []).append(_reached(method, contest, budget, runs, folder))
    return [
        Group(title if len(found) > 1 else "", reached, _levels(reached, references, by_row))
        for title, reached in found.items()
    ]


def _budget(label: str) -> tuple[str, int | None]:
    """What a label says beside the budget, and the budget."""
    matched = re.fullmatch(r"([\d,]+) pairs(?:, )?(.*)", label)
    return (matched[2], int(matched[1].replace(",", ""))) if matched else (label, None)


def _reached(
    method: str, contest: str, budget: int | None, runs: Sequence[Record], folder: Path
) -> Reached:
    means = [run.mean for run in runs if run.mean is not None]
    sizes = [_set_bytes(folder / "runs" / cell_name(r.row, r.column, r.seed) / SET) for r in runs]
    known = [size for size in sizes if size is not None]
    return Reached(
        method,
        contest,
        budget,
        statistics.fmean(means),
        statistics.stdev(means) if len(means) > 1 else None,
        statistics.fmean(run.storage for run in runs),
        statistics.fmean(known) if known else None,
        statistics.fmean(run.seconds or 0.0 for run in runs),
    )


def _set_bytes(path: Path) -> int | None:
    """What images, texts and similarity of a set take; not its text trunk, which is not learned."""
    try:
        with open_artifact(path, "distilled set") as (_, handle):
            own = [n for n in handle.keys() if n in ("images", "texts") or "similarity." in n]  # noqa: SIM118
            return sum(_tensor_bytes(handle.get_slice(name)) for name in own)
    except LorsError:
        return None


def _tensor_bytes(part: object) -> int:
    count = SIZES[part.get_dtype()]  # type: ignore[attr-defined]
    for length in part.get_shape():  # type: ignore[attr-defined]
        count *= length
    return count


def _levels(
    reached: Iterable[Reached], references: Sequence[Reference], by_row: bool
) -> dict[str, float]:
    """Full data and chance, where all contests share them."""
    contests = {each.contest for each in reached}
    here = [r for r in references if contests & set(r.rows if by_row else r.columns)]
    levels = {
        "full data": {reference.mean for reference in here},
        "chance": {r.chances.mean for r in here if r.chances is not None},
    }
    return {name: values.pop() for name, values in levels.items() if len(values) == 1}
