"""What methods reach at each budget, and against what it costs: bytes and seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lors.show.report import blocks
from lors.show.report.blocks import Block
from lors.show.report.reached import Group, Reached

__all__ = ["Cost", "budget_section", "cost_section", "pareto_front"]

RATIO = 4
"""Costs that span more than this factor are drawn on an axis of ratios."""


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
    words = {
        "": "Each mark is a method at one budget. The line is the Pareto front: no other result "
        "has more recall at no more cost.",
        "bytes": "Bytes are those of images, texts and similarity.",
        "seconds": "Selected pairs count as no seconds; choosing and tuning them is not counted.",
    }
    units = {"", *(plot["x"]["unit"] for plot in plots)}
    said = " ".join(sentence for unit, sentence in words.items() if unit in units)
    return blocks.section("Recall against cost", blocks.text(said), *plots)


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
