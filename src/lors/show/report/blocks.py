"""What a page is made of: each block is plain data that a function of the same name draws.

The functions that draw are in the JavaScript files beside this one. Text in a block is always shown
as text, whatever characters it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "Block",
    "bar",
    "bars",
    "cell",
    "code",
    "command",
    "cost_axis",
    "facts",
    "group",
    "lines",
    "plot",
    "section",
    "table",
    "text",
    "tiles",
]

Block = dict[str, Any]


def section(title: str, *blocks: Block) -> Block:
    """A part of the page with a heading and an entry in the navigation."""
    return {"title": title, "blocks": list(blocks)}


def text(*paragraphs: str) -> Block:
    """Paragraphs."""
    return {"kind": "text", "paragraphs": list(paragraphs)}


def tiles(*entries: tuple[str, str]) -> Block:
    """The few numbers that matter, large: (number, what it is)."""
    return {"kind": "tiles", "entries": [list(entry) for entry in entries]}


def facts(*entries: tuple[str, str]) -> Block:
    """A list of (name, value)."""
    return {"kind": "facts", "entries": [list(entry) for entry in entries]}


def bar(name: str, mean: float, deviation: float | None, label: str, accent: bool) -> Block:
    """One bar: its length, its deviation, its number as text, and whether it is the one to see."""
    return {"name": name, "mean": mean, "deviation": deviation, "label": label, "accent": accent}


def group(title: str, bars: Iterable[Block], reference: float | None = None) -> Block:
    """Bars that belong together, with a line at the full data's recall if that is known."""
    return {"title": title, "bars": list(bars), "reference": reference}


def bars(*groups: Block) -> Block:
    """Groups of horizontal bars on one scale."""
    return {"kind": "bars", "groups": list(groups)}


def cell(text: str, strong: bool = False) -> Block:
    """One cell of a table."""
    return {"text": text, "strong": strong}


def table(name: str, head: Sequence[str], rows: Iterable[Sequence[Block]], fold: str = "") -> Block:
    """A table; the first column names the rows. With ``fold``, it is closed under that title."""
    cells = [list(row) for row in rows]
    return {"kind": "table", "name": name, "head": list(head), "rows": cells, "fold": fold}


def lines(title: str, series: dict[str, list[tuple[float, float]]]) -> Block:
    """One line chart over iterations: points by name of the line."""
    return {"title": title, "series": [{"name": n, "points": p} for n, p in series.items()]}


def cost_axis(label: str, unit: str, ratio: bool, ticks: Sequence[float] = ()) -> Block:
    """The axis of a plot.

    Args:
        label: below it.
        unit: how its numbers are written: ``bytes``, ``seconds`` or ``pairs``.
        ratio: whether equal distances are equal ratios.
        ticks: numbers to write; none: round ones.
    """
    return {"label": label, "unit": unit, "ratio": ratio, "ticks": list(ticks)}


def plot(
    title: str,
    axis: Block,
    series: Sequence[Block],
    levels: Mapping[str, float],
    front: Sequence[tuple[float, float]],
    numbers: Block,
) -> Block:
    """Recall against a cost, by method, with a table of the same numbers.

    Args:
        title: above it.
        axis: of the cost.
        series: the points of each method.
        levels: horizontal lines by name.
        front: the points that a line of steps goes through.
        numbers: the table.
    """
    lines = [{"name": name, "value": value} for name, value in levels.items()]
    return {
        "kind": "plot",
        "title": title,
        "x": axis,
        "y": "mean recall (%)",
        "series": list(series),
        "levels": lines,
        "front": list(front),
        "table": numbers,
    }


def command(line: str) -> Block:
    """A command for the terminal."""
    return {"kind": "command", "line": line}


def code(title: str, text: str) -> Block:
    """A long text, closed under its title."""
    return {"kind": "code", "title": title, "text": text}
