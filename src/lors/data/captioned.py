"""A folder of images with captions beside them, as one list: how sets of images are shared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import SUFFIXES, Row, caption_texts, file_items, image_name, root_folder
from lors.data.pairs import Item
from lors.data.problems import Problems, collecting
from lors.data.table import table_rows
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["captioned_images"]

TABLES = (".csv", ".jsonl", ".json")
NAMES = {"image": ("image", "file_name"), "caption": ("caption", "text")}
"""The columns that hold images and captions; the second names are those of imagefolder."""


def captioned_images(root: Path, progress: Progress) -> list[Item]:
    """All images of a folder that have a caption.

    Captions are in one table (.csv, .jsonl or a .json list of rows) with the columns ``image`` or
    ``file_name`` and ``caption`` or ``text``; or in a .txt file beside each image, of its name.

    Raises:
        InputError: there are no images with captions, or rows or files that cannot be used.
    """
    config = DataConfig(source="table", root=root)
    root = root_folder(config)
    tables = [path for path in sorted(root.iterdir()) if path.suffix.lower() in TABLES]
    if len(tables) > 1:
        names = ", ".join(path.name for path in tables[:5])
        raise InputError(f"{str(root)!r} holds several tables ({names}): leave one of them")
    with collecting(config, progress) as problems:
        rows = _table(tables[0], problems) if tables else _texts(root, problems)
        items = file_items(root, rows, problems, progress, ["train"])["train"]
    if not items:
        raise InputError(
            f"{str(root)!r} holds no images with captions: put a table beside them (.csv, .jsonl "
            "or .json, with the columns image and caption), or a .txt file of its name beside each"
        )
    return items


def _table(path: Path, problems: Problems) -> Iterator[Row]:
    rows = _list(path) if path.suffix.lower() == ".json" else table_rows(path, problems)
    for where, row in rows:
        if row is None:
            yield Row(where, None, None, ())
            continue
        image, captions = None, tuple[str, ...]()
        with problems:
            image = image_name(_first(row, "image"), where)
        with problems:
            captions = caption_texts(_first(row, "caption"), where)
        yield Row(where, "train", image, captions)


def _first(row: dict[str, Any], what: str) -> Any:
    return next((row[name] for name in NAMES[what] if row.get(name) is not None), None)


def _list(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the captions {str(path)!r}: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{str(path)!r} must be a JSON list of rows with image and caption")
    for number, row in enumerate(rows):
        yield f"{path.name} row {number}", row


def _texts(root: Path, problems: Problems) -> Iterator[Row]:
    """A caption in a text file beside each image, in the order of their names."""
    for path in sorted(root.rglob("*")):
        beside = path.with_suffix(".txt")
        if path.suffix.lower() not in SUFFIXES or not beside.is_file():
            continue
        where, captions = str(beside.relative_to(root)), tuple[str, ...]()
        with problems:
            try:
                captions = caption_texts(beside.read_text("utf-8"), where)
            except (OSError, ValueError) as error:
                raise BadRowError(f"{where}: {error}", "captions that are no text") from None
        yield Row(where, "train", str(path.relative_to(root)), captions)
