"""Tables as CSV that is safe to open: a spreadsheet takes a cell that begins with = for a formula.

Such cells get an apostrophe in front, which spreadsheets do not show, and which is taken away when
the table is read back.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lors.files.artifacts import writing

__all__ = ["read_csv", "write_csv"]

FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file whole or not at all."""
    with writing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([_escaped(cell) for cell in row] for row in rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of such a file, by column.

    Raises:
        csv.Error: it is no CSV.
    """
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: _plain(cell) for name, cell in row.items()}
            for row in csv.DictReader(file, strict=True)
        ]


def _escaped(cell: Any) -> Any:
    return (
        f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) and not _number(cell) else cell
    )


def _plain(cell: Any) -> Any:
    escaped = isinstance(cell, str) and cell.startswith("'") and FORMULA.match(cell[1:])
    return cell[1:] if escaped else cell


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
