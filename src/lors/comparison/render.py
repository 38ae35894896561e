"""Tables of mean ± deviation as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from lors.evaluation.statistic import plus_minus

__all__ = ["Block", "Entry", "Line", "latex", "markdown", "markdown_table", "marked"]


@dataclass(frozen=True)
class Entry:
    """One number of a table.

    Args:
        mean: over runs; none where there is no result.
        deviation: over runs; none for a single one.
        published: the paper's number, if it has one for this cell.
        best: better than all others by more than both deviations; shown in bold.
        digits: behind the point.
    """

    mean: float | None = None
    deviation: float | None = None
    published: float | None = None
    best: bool = False
    digits: int = 1

    def text(self, before: str = "", after: str = "", mark: str = "±") -> str:
        """The number between two marks if it is the best, with the paper's beside it.

        >>> Entry(8.25, 0.21, best=True).text("**", "**")
        '**8.2 ± 0.2**'
        """
        form = f".{self.digits}f"
        text = "–" if self.mean is None else plus_minus(self.mean, self.deviation, form, mark)
        text = f"{before}{text}{after}" if self.best else text
        return text if self.published is None else f"{text} (paper {self.published:{form}})"


def marked(entries: Sequence[Entry], lowest: bool = False) -> list[Entry]:
    """The entries with the best marked, where its deviation overlaps with that of no other.

    >>> [entry.best for entry in marked([Entry(40.7, 0.1), Entry(44.7, 0.2), Entry()])]
    [False, True, False]
    >>> [entry.best for entry in marked([Entry(40.7, 0.4), Entry(41.0, 0.2)])]
    [False, False]

    Args:
        entries: those that compete. Of a single seed nothing is known, so that it is no best.
        lowest: whether less is better.
    """
    known = sorted(
        (e for e in entries if e.mean is not None), key=lambda e: e.mean or 0, reverse=not lowest
    )
    best = known[0] if len(known) > 1 and all(_apart(known[0], e) for e in known[1:]) else None
    return [replace(entry, best=entry is best) for entry in entries]


def _apart(one: Entry, other: Entry) -> bool:
    """Whether two numbers differ by more than they deviate, as far as that is known."""
    if one.mean is None or other.mean is None:
        return False
    if one.deviation is None or other.deviation is None:
        return False
    return abs(one.mean - other.mean) > one.deviation + other.deviation


@dataclass(frozen=True)
class Line:
    """One line of a table: its head, and an entry per column."""

    label: str
    entries: Sequence[Entry]


Block = tuple[str, Sequence[Line]]
"""A heading, and the lines below it."""


def markdown(
    title: str,
    columns: Sequence[str],
    blocks: Sequence[Block],
    notes: Sequence[str],
    tables: Mapping[str, Sequence[Sequence[str]]] = MappingProxyType({}),
) -> str:
    """A page with one table per block, each a heading and its lines; then other tables as text."""
    parts = [
        f"# {title}",
        "Mean ± deviation over seeds; the best is bold where no deviations overlap.",
        *notes,
    ]
    for heading, lines in blocks:
        table = [["", *columns]]
        table += [[line.label, *(e.text("**", "**") for e in line.entries)] for line in lines]
        parts += [f"## {heading}", markdown_table(table)]
    for heading, text in tables.items():
        parts += [f"## {heading}", markdown_table(text)]
    return "\n\n".join(parts) + "\n"


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """A table of text; its first line is the head.

    >>> print(markdown_table([["method", "recall"], ["LoRS", "39.1"]]))
    | method | recall |
    | --- | --- |
    | LoRS | 39.1 |
    """
    head, *body = lines
    rows = [head, ["---"] * len(head), *body]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "\n".join(f"| {row} |" for row in cells)


def latex(title: str, columns: Sequence[str], lines: Sequence[Line], notes: Sequence[str]) -> str:
    """A ``table`` environment; needs the package booktabs."""
    rows = [[_escape(text) for text in ("", *columns)]]
    for line in lines:
        numbers = (e.text(r"\textbf{", "}", r"$\pm$") for e in line.entries)
        rows.append([_escape(line.label), *numbers])
    head, *body = (" & ".join(row) + r" \\" for row in rows)
    return "\n".join(
        (
            r"\begin{table}",
            rf"\caption{{{_escape(' '.join((title + '.', *notes)))}}}",
            rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    names = {"±": r"$\pm$", "ω": r"$\omega$", "–": "--"}
    plain = {c: f"\\{c}" for c in "&%$#_{}"}
    return "".join((special | names | plain).get(c, c) for c in text)
