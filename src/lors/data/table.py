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
from lors.data.files import below, file_items, root_folder
from lors.data.pairs import Item
from lors.errors import InputError

__all__ = ["read_table"]


def read_table(config: DataConfig) -> dict[str, list[Item]]:
    """The splits of a table, or of one table per split."""
    root = root_folder(config)
    rows = defaultdict(list)
    for split, path in _tables(root, config.annotations).items():
        for number, row in enumerate(_rows(path)):
            where = f"{path.name} row {number}"
            image, caption = row.get("image"), row.get("caption")
            if not isinstance(image, str) or not image or not isinstance(caption, str):
                raise InputError(f"{where} needs the columns image and caption")
            given = row.get("split") if split == "all" else split
            into = "train" if given in (None, "") else given
            if into not in ("train", "val", "test"):
                raise InputError(f"{where}: split {into!r} is none of train, val, test")
            rows[into].append((image, caption, where))
    return {split: file_items(root, found) for split, found in rows.items()}


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


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield from _json_rows(lines) if path.suffix == ".jsonl" else csv.DictReader(lines)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise InputError(f"cannot read the table {str(path)!r}: {error}") from None


def _json_rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.strip():
            row = json.loads(line)
            yield row if isinstance(row, dict) else {}
