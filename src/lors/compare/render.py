"""Tables of mean ± deviation as Markdown and LaTeX, the best of each line in bold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Line", "latex", "markdown"]


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        label: its head.
        values: mean and deviation per column; none where there is no result.
        published: the paper's number per column, where it has one.
        lowest: the best is the lowest, as with times.
    """

    label: str
    values: Sequence[tuple[float, float] | None]
    published: Sequence[float | None]
    lowest: bool = False

    def best(self) -> int | None:
        """The column with the best mean, if there is a choice."""
        known = {i: value[0] for i, value in enumerate(self.values) if value is not None}
        if len(known) < 2:
            return None
        return (min if self.lowest else max)(known, key=lambda i: known[i])


def markdown(
    title: str,
    columns: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Line]]],
    notes: Sequence[str],
) -> str:
    """A page with one table per block, each a heading and its lines."""
    parts = [f"# {title}", "Mean ± deviation over seeds, best in bold.", *notes]
    for heading, lines in blocks:
        table = [
            f"| | {' | '.join(_safe(column) for column in columns)} |",
            f"|---|{'---|' * len(columns)}",
            *(
                f"| {_safe(line.label)} | {' | '.join(_cells(line, '**', '**'))} |"
                for line in lines
            ),
        ]
        parts += [f"## {heading}", "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def latex(title: str, columns: Sequence[str], lines: Sequence[Line], notes: Sequence[str]) -> str:
    """A ``table`` environment; needs the package booktabs."""
    rows = [
        " & ".join((_escape(line.label), *_cells(line, r"\textbf{", "}", r"$\pm$"))) + r" \\"
        for line in lines
    ]
    return "\n".join(
        (
            r"\begin{table}",
            rf"\caption{{{_escape(' '.join((title + '.', *notes)))}}}",
            rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
            r"\toprule",
            " & ".join(("", *(_escape(column) for column in columns))) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def _cells(line: Line, before: str, after: str, pm: str = "±") -> list[str]:
    best = line.best()
    cells = []
    for column, (value, paper) in enumerate(zip(line.values, line.published, strict=True)):
        if value is None:
            text = "–"
        else:
            digits = 1 if value[0] >= 1 or not line.lowest else 3
            text = f"{value[0]:.{digits}f} {pm} {value[1]:.{digits}f}"
            text = f"{before}{text}{after}" if column == best else text
        cells.append(text if paper is None else f"{text} (paper {paper:.1f})")
    return cells


def _safe(text: str) -> str:
    return text.replace("|", "\\|")


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    names = {"±": r"$\pm$", "ω": r"$\omega$", "–": "--"}
    plain = {c: f"\\{c}" for c in "&%$#_{}"}
    return "".join((special | names | plain).get(c, c) for c in text)
