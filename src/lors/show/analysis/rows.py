"""What an analysis finds, as rows of a table that is printed, written and read again."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lors.files import artifacts
from lors.files.tables import read_csv, write_csv
from lors.system.errors import InputError

__all__ = ["Row", "read_rows", "write_rows"]

Row = dict[str, Any]
DIGITS = 6
"""Significant digits kept: what lies below differs between machines."""


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as the ending of the file says, .csv or .json.

    Raises:
        InputError: another ending.
    """
    rows = [{name: _short(value) for name, value in row.items()} for row in rows]
    if _ending(path) == ".json":
        artifacts.write_text(path, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        return
    columns = list(rows[0]) if rows else []
    write_csv(path, columns, ([row[column] for column in columns] for row in rows))


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows in a file; the values of a .csv are text.

    Raises:
        InputError: no such file, or it does not hold these columns.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        of_json = _ending(path) == ".json"
        rows = json.loads(path.read_text("utf-8")) if of_json else read_csv(path)
        return [{name: _plain(row[name]) for name in columns} for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error):
        raise InputError(
            f"{str(path)!r} is not a table with the columns {', '.join(columns)}"
        ) from None


def _plain(value: Any) -> str | int | float:
    """A cell, which is a text or a number."""
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"{value!r} is neither text nor a number")
    str(value).encode()  # half of a surrogate pair could not be written again
    return value


def _ending(path: Path) -> str:
    if path.suffix not in (".csv", ".json"):
        raise InputError(f"tables are written as .csv or .json, not as {str(path)!r}")
    return path.suffix


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
