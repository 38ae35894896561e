"""Tables of mean ± deviation as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lors.evaluation.statistic import plus_minus

__all__ = ["Entry", "Line", "latex", "markdown"]


@dataclass(frozen=True)
class Entry:
    """One number of a table.

    Args:
        mean: over runs; none where there is no result.
        deviation: over runs; none for a single one.
        published: the paper's number, if it has one for this cell.
        best: shown in bold.
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


@dataclass(frozen=True)
class Line:
    """One line of a table: its head, and an entry per column."""

    label: str
    entries: Sequence[Entry]


def markdown(
    title: str,
    columns: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Line]]],
    notes: Sequence[str],
) -> str:
    """A page with one table per block, each a heading and its lines."""
    parts = [f"# {title}", "Mean ± deviation over seeds, best in bold.", *notes]
    for heading, lines in blocks:
        table = [["", *columns], ["---"] * (len(columns) + 1)]
        table += [[line.label, *(e.text("**", "**") for e in line.entries)] for line in lines]
        rows = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in table)
        parts += [f"## {heading}", "\n".join(f"| {row} |" for row in rows)]
    return "\n\n".join(parts) + "\n"


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
