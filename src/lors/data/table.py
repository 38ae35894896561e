"""A folder of images with a CSV or JSONL table of image, caption and, if given, split.

Without a ``split`` column, and without one file per split, every row is for training, and the
validation and test splits are held out from it.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import (
    SUFFIXES,
    Row,
    below,
    caption_texts,
    file_items,
    image_name,
    root_folder,
)
from lors.data.pairs import Item
from lors.data.problems import Problems, collecting
from lors.data.source import Source
from lors.system.errors import InputError, shortened
from lors.system.progress import Progress

__all__ = ["SOURCE", "read_table", "table_rows"]

ROW_LINES = 20
"""Lines of a file that a caption may go over."""


def read_table(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """The splits of a table, or of one table per split."""
    root = root_folder(config)
    with collecting(config, progress) as problems:
        rows = (
            _checked(row, where, split, problems)
            for split, path in _tables(root, config.annotations).items()
            for where, row in table_rows(path, problems, ("image", "caption"))
        )
        return file_items(root, rows, problems, progress)


def _checked(row: dict[str, Any] | None, where: str, table: str, problems: Problems) -> Row:
    """A row with what is right in it; each of its problems is collected."""
    if row is None:
        return Row(where, None, None, ())
    split, image, captions = None, None, tuple[str, ...]()
    with problems:
        image = image_name(row.get("image"), where)
    with problems:
        captions = caption_texts(row.get("caption"), where)
    with problems:
        split = _split(row.get("split") if table == "all" else table, where)
    return Row(where, split, image, captions)


def _split(given: object, where: str) -> str:
    into = "train" if given in (None, "") else given
    if into not in ("train", "val", "test"):
        raise BadRowError(
            f"{where}: split {shortened(str(into))!r} is none of train, val, test", "unknown splits"
        )
    return str(into)


def _tables(root: Path, annotations: dict[str, str]) -> dict[str, Path]:
    if annotations:
        for split in annotations:
            if split not in ("all", "train", "val", "test"):
                raise InputError(
                    f"data.annotations.{split}: {split!r} is none of train, val, test, and all for "
                    "one table of all splits"
                )
        return {s: below(root, name, f"data.annotations.{s}") for s, name in annotations.items()}
    found = [path for path in sorted(root.iterdir()) if path.suffix in (".csv", ".jsonl")]
    if len(found) != 1:
        raise InputError(
            f"{str(root)!r} holds {len(found)} tables (.csv or .jsonl); "
            "name the one to use: set data.annotations.all"
        )
    return {"all": below(root, found[0].name, "data.root")}


def table_rows(
    path: Path, problems: Problems, columns: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The rows of a table by column, each with its place in words; None for one with a problem.

    Args:
        path: a .csv or .jsonl file.
        problems: of rows that cannot be read.
        columns: that the first line of a .csv file must name.

    Raises:
        InputError: the file cannot be read, or lacks these columns.
    """
    try:
        # What is not UTF-8 is found where it stands: its characters are halves of surrogate pairs.
        with path.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as lines:
            if path.suffix == ".jsonl":
                yield from _json_rows(lines, path.name, problems)
            else:
                yield from _csv_rows(lines, path.name, problems, columns)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the table {str(path)!r}: {error}") from None


def _json_rows(
    lines: Iterable[str], name: str, problems: Problems
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            where, row = f"{name} line {number}", None
            with problems:
                row = _json_row(line, where)
            yield where, row


def _json_row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRowError(
            f"{where}: cannot read it as JSON: {error}", "rows that are none"
        ) from None
    if not isinstance(row, dict):
        raise BadRowError(f"{where} must be a JSON object with columns", "rows that are none")
    return row


class _Lines:
    """The lines of a file; those of a row that is none are read again as rows of their own."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self._again = iter(lines), deque[str]()
        self.taken: list[str] = []
        self.number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if len(self.taken) == ROW_LINES:
            raise StopIteration
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        return line

    def next_row(self) -> None:
        self.number += len(self.taken)
        self.taken = []

    def again(self) -> None:
        """Go back behind the first line of this row."""
        self._again.extendleft(reversed(self.taken[1:]))
        self.taken = self.taken[:1]


def _csv_rows(
    file: Iterable[str], name: str, problems: Problems, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The rows under the names in the first line.

    A quote that is never closed takes in all lines up to the next one; so a row is refused that the
    CSV format does not allow, that goes over more lines than a caption does, or whose lines name
    further images. Reading goes on in its second line.
    """
    lines = _Lines(file)
    reader = csv.reader(lines, strict=True)
    names: list[str] | None = None
    for number in count(1):
        lines.next_row()
        where = f"{name} row {number}"
        if lines.number >= number:
            where += f" (line {lines.number + 1})"  # rows before it have several lines
        found: list[str] | None = None
        bad = False
        try:
            found = _csv_row(reader, lines, f"{name} line {lines.number + 1}")
        except BadRowError as error:
            if names is None:
                raise
            problems.add(error)
            lines.again()
            reader, bad = csv.reader(lines, strict=True), True
        if found is None and not bad:
            return
        if names is None:
            assert found is not None
            names = _names(found, name, columns)
        elif bad or found:
            row: dict[str, Any] | None = None
            with problems:
                row = None if found is None else _by_name(names, found, where)
            yield where, row


def _csv_row(reader: Iterator[list[str]], lines: _Lines, where: str) -> list[str] | None:
    """The next row; None at the end."""
    try:
        row = next(reader, None)
    except csv.Error as error:
        if len(lines.taken) == ROW_LINES:
            reason = f"starts a row of more than {ROW_LINES} lines: close its quotes"
        else:
            reason = f'is not valid CSV ({error}): close its quotes, and write a quote as ""'
        raise BadRowError(f"{where} {reason}", "quotes that are not closed") from None
    if row is not None and any(_swallows_rows(cell) for cell in row):
        raise BadRowError(
            f"{where} starts a row of {len(lines.taken)} lines that name further images: close its "
            "quotes",
            "quotes that are not closed",
        )
    return row


def _names(row: Sequence[str], name: str, columns: Sequence[str]) -> list[str]:
    """The names of the columns."""
    if any(any("\ud800" <= letter <= "\udfff" for letter in cell) for cell in row):
        raise InputError(f"the first line of {name} is not UTF-8: save the table as CSV UTF-8")
    if len(set(row)) < len(row):
        raise InputError(f"{name} names a column twice: {', '.join(row)}")
    if not set(columns) <= set(row):
        raise InputError(
            f"the first line of {name} must name the columns {' and '.join(columns)}; it names "
            f"{shortened(', '.join(row)) or 'none'}"
        )
    return list(row)


def _by_name(names: Sequence[str], row: Sequence[str], where: str) -> dict[str, str]:
    if len(row) > len(names):
        raise BadRowError(
            f"{where} has {len(row)} columns, more than the {len(names)} of the first line: put "
            "captions with commas in quotes",
            "rows of too many columns",
        )
    return dict(zip(names, row, strict=False))


def _swallows_rows(cell: str) -> bool:
    r"""Whether a cell of several lines holds the name of an image, as other rows do.

    >>> _swallows_rows("a 6 inch thing\n3.jpg,a dog"), _swallows_rows("a dog,\nand a cat")
    (True, False)
    """
    lines = cell.splitlines()
    pieces = (piece for line in lines for piece in line.split(","))
    return len(lines) > 1 and any(piece.strip().lower().endswith(SUFFIXES) for piece in pieces)


SOURCE = Source(read_table)
