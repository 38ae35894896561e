"""What methods reach at each budget, and against what it costs: bytes and seconds."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lors.comparison.cell import cell_name
from lors.comparison.results import Record, Reference
from lors.comparison.table import Table
from lors.evaluation.statistic import plus_minus
from lors.files.artifacts import open_artifact
from lors.runs.folders import SET
from lors.show.report import blocks
from lors.show.report.blocks import Block
from lors.system.errors import LorsError

__all__ = ["Cost", "Reached", "budget_section", "cost_section", "groups_of", "pareto_front"]

RATIO = 4
"""Costs that span more than this factor are drawn on an axis of ratios."""
SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}


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


@dataclass(frozen=True)
class Cost:
    """A cost to draw recall against.

    Args:
        name: in sentences and titles.
        unit: ``bytes``, ``seconds`` or ``pairs``: how numbers of it are written.
        of: what a result costs.
    """

    name: str
    unit: str
    of: Callable[[Reached], float]

    def text(self, value: float) -> str:
        """The cost in words.

        >>> Cost("size", "bytes", lambda each: each.size).text(1_234_567)
        '1.23 MB'
        >>> Cost("time", "seconds", lambda each: each.seconds).text(0)
        'none'
        """
        if self.unit == "bytes":
            power = next(p for p in (9, 6, 3, 0) if value >= 10**p or p == 0)
            return f"{value / 10**power:.3g} { {9: 'GB', 6: 'MB', 3: 'kB', 0: 'B'}[power] }"
        if self.unit == "seconds":
            return f"{value:,.0f} s" if value else "none"
        return f"{value:,.1f}"


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
        "chance": {r.chance for r in here if r.chance is not None},
    }
    return {name: values.pop() for name, values in levels.items() if len(values) == 1}


def budget_section(groups: Sequence[Group]) -> Block | None:
    """Recall over budgets; nothing where there is only one."""
    plots = [_budget_plot(g) for g in groups if len({r.budget for r in g.reached}) > 1]
    if not plots:
        return None
    words = (
        "Mean recall on test against storage in plain pairs; bars are the deviation over seeds. "
        "Pick a name to see its line."
    )
    return blocks.section("Recall over budgets", blocks.text(words), *plots)


def _budget_plot(group: Group) -> Block:
    by_place = {(each.method, each.contest): each for each in group.reached}
    contests = sorted({(r.budget or 0, r.contest) for r in group.reached})
    known = [
        [by_place[method, contest] for _, contest in contests if (method, contest) in by_place]
        for method in group.methods()
    ]
    series = [
        _series(line[0].method, line, lambda each: each.budget or 0, joined=True) for line in known
    ]
    texts = (
        [
            method,
            *(
                by_place[method, c].recall() if (method, c) in by_place else "–"
                for _, c in contests
            ),
        ]
        for method in group.methods()
    )
    title = _titled("Recall over budgets", group)
    budgets = [budget for budget, _ in contests]
    rows = [*texts, *([name, *[f"{v:.1f}"] * len(contests)] for name, v in group.levels.items())]
    return blocks.plot(
        title,
        blocks.cost_axis(
            "storage in plain pairs", "pairs", budgets[-1] > RATIO * budgets[0], budgets
        ),
        series,
        group.levels,
        (),
        _table(title, ["", *(contest for _, contest in contests)], rows),
    )


def cost_section(groups: Sequence[Group]) -> Block | None:
    """Recall against bytes and seconds; nothing of a cost that all have in common."""
    plots = []
    for group in groups:
        sized = all(each.size is not None for each in group.reached)
        size = Cost("bytes", "bytes", lambda each: each.size or 0.0)
        if not sized:
            size = Cost("storage in plain pairs", "pairs", lambda each: each.storage)
        for cost in (size, Cost("seconds to distil", "seconds", lambda each: each.seconds)):
            values = {cost.of(each) for each in group.reached}
            if max(values) > 1.05 * min(values):
                plots.append(_cost_plot(group, cost))
    if not plots:
        return None
    words = (
        "Each mark is a method at one budget. The line is the Pareto front: no other result has "
        "more recall at no more cost. Bytes are those of images, texts and similarity. Selected "
        "pairs take no time to distil, but for the time to select and tune them, which is not "
        "counted."
    )
    return blocks.section("Recall against cost", blocks.text(words), *plots)


def _cost_plot(group: Group, cost: Cost) -> Block:
    front = pareto_front(group.reached, cost.of)
    series = [
        _series(method, [r for r in group.reached if r.method == method], cost.of, False, cost)
        for method in group.methods()
    ]
    ordered = sorted(group.reached, key=lambda each: (cost.of(each), -each.mean))
    rows = [
        [r.method, r.contest, cost.text(cost.of(r)), r.recall(), "yes" if r in front else "no"]
        for r in ordered
    ]
    some = [value for value in map(cost.of, group.reached) if value > 0]
    title = _titled(f"Recall against {cost.name}", group)
    return blocks.plot(
        title,
        blocks.cost_axis(cost.name, cost.unit, max(some) > RATIO * min(some)),
        series,
        group.levels,
        [(cost.of(each), each.mean) for each in front],
        _table(title, ["", "contest", cost.name, "mean recall", "on the front"], rows),
    )


def pareto_front(reached: Iterable[Reached], cost: Callable[[Reached], float]) -> list[Reached]:
    """The results that none beats in recall at no more cost, cheapest first."""
    front: list[Reached] = []
    for each in sorted(reached, key=lambda each: (cost(each), -each.mean)):
        if not front or each.mean > front[-1].mean:
            front.append(each)
    return front


def _titled(title: str, group: Group) -> str:
    return f"{title}, {group.title}" if group.title else title


def _series(
    name: str,
    reached: Sequence[Reached],
    place: Callable[[Reached], float],
    joined: bool,
    cost: Cost | None = None,
) -> Block:
    points = [
        (
            place(each),
            each.mean,
            each.deviation,
            f"{each.contest}: {each.recall()}" + (f", {cost.text(place(each))}" if cost else ""),
        )
        for each in reached
    ]
    return {"name": name, "points": points, "joined": joined}


def _table(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Block:
    cells = ([blocks.cell(text) for text in row] for row in rows)
    return blocks.table(name, head, cells, fold=f"Table: {name}")
