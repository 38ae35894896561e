"""A folder of images with a CSV or JSONL table of image, caption and, if given, split.

Without a ``split`` column, and without one file per split, every row is for training, and the
validation and test splits are held out from it.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lors.config import DataConfig
from lors.data.files import SUFFIXES, Row, below, file_items, root_folder
from lors.data.pairs import Item
from lors.data.source import Source
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["SOURCE", "read_table"]

ROW_LINES = 20
"""Lines of a file that a caption may go over."""


def read_table(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """The splits of a table, or of one table per split."""
    root = root_folder(config)
    rows: dict[str, list[Row]] = defaultdict(list)
    for split, path in _tables(root, config.annotations).items():
        for line, row in _rows(path):
            where = f"{path.name} line {line}"
            image, caption = row.get("image"), row.get("caption")
            if not isinstance(image, str) or not image or not isinstance(caption, str):
                raise InputError(f"{where} needs the columns image and caption")
            given = row.get("split") if split == "all" else split
            into = "train" if given in (None, "") else given
            if into not in ("train", "val", "test"):
                raise InputError(f"{where}: split {into!r} is none of train, val, test")
            rows[into].append((image, caption, where))
    return file_items(root, rows, progress)


def _tables(root: Path, annotations: dict[str, str]) -> dict[str, Path]:
    if annotations:
        return {s: below(root, name, f"data.annotations.{s}") for s, name in annotations.items()}
    found = [path for path in sorted(root.iterdir()) if path.suffix in (".csv", ".jsonl")]
    if len(found) != 1:
        raise InputError(
            f"{str(root)!r} holds {len(found)} tables (.csv or .jsonl); "
            "name the one to use: set data.annotations.all"
        )
    return {"all": below(root, found[0].name, "data.root")}


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table, each with the line that it starts in."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield from _json_rows(lines) if path.suffix == ".jsonl" else _csv_rows(lines, path)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the table {str(path)!r}: {error}") from None


def _json_rows(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = json.loads(line)
            yield number, row if isinstance(row, dict) else {}


def _csv_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows under the names in the first line.

    A quote that is never closed takes in all lines up to the next one; so a row is refused that the
    CSV format does not allow, that goes over more lines than a caption does, or whose lines name
    further images.
    """
    reader = csv.reader(lines, strict=True)
    names: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{path.name} line {line} is not valid CSV ({error}): close its quotes, and write "
                'a quote inside quotes as ""'
            ) from None
        if row is None:
            return
        if reader.line_num - line >= ROW_LINES:
            raise InputError(
                f"{path.name} line {line} starts a row of {reader.line_num - line + 1} lines: "
                "close its quotes"
            )
        if any(_swallows_rows(cell) for cell in row):
            raise InputError(
                f"{path.name} line {line} starts a row of {reader.line_num - line + 1} lines that "
                "name further images: close its quotes"
            )
        if names is None:
            names = row
            if len(set(names)) < len(names):
                raise InputError(f"{path.name} names a column twice: {', '.join(names)}")
        elif len(row) > len(names):
            raise InputError(
                f"{path.name} line {line} has {len(row)} columns, more than the {len(names)} of "
                "the first line: put captions with commas in quotes"
            )
        elif row:
            yield line, dict(zip(names, row, strict=False))


def _swallows_rows(cell: str) -> bool:
    r"""Whether a cell of several lines holds the name of an image, as other rows do.

    >>> _swallows_rows("a 6 inch thing\n3.jpg,a dog"), _swallows_rows("a dog,\nand a cat")
    (True, False)
    """
    lines = cell.splitlines()
    pieces = (piece for line in lines for piece in line.split(","))
    return len(lines) > 1 and any(piece.strip().lower().endswith(SUFFIXES) for piece in pieces)


SOURCE = Source(read_table)
