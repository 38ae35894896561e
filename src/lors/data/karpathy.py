"""Karpathy/BLIP annotations, as Flickr8k, Flickr30k and COCO use them.

A JSON list per split. A row is ``{"image": path, "caption": text}``, once per caption, or with the
list of captions of the image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import Row, below, caption_texts, file_items, image_name, root_folder
from lors.data.pairs import Item
from lors.data.problems import Problems, collecting
from lors.data.source import Source
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["SOURCE", "read_karpathy"]


def read_karpathy(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """The splits named in ``config.annotations``."""
    root = root_folder(config)
    if "train" not in config.annotations:
        raise InputError("data source 'karpathy' needs data.annotations.train, a JSON file")
    files = {
        split: below(root, name, f"data.annotations.{split}")
        for split, name in config.annotations.items()
    }
    with collecting(config, progress) as problems:
        rows = (row for split, path in files.items() for row in _rows(path, split, problems))
        return file_items(root, rows, problems, progress, files)


def _rows(path: Path, split: str, problems: Problems) -> Iterator[Row]:
    try:
        rows = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the annotations {str(path)!r}: {error}") from None
    if not isinstance(rows, list):
        raise InputError(f"{str(path)!r} must be a JSON list of rows with image and caption")
    for number, row in enumerate(rows):
        where = f"{path.name} row {number}"
        image, captions = None, tuple[str, ...]()
        with problems:
            if not isinstance(row, dict):
                raise BadRowError(f"{where} needs an image and a caption", "rows that are none")
            with problems:
                image = image_name(row.get("image"), where)
            captions = caption_texts(row.get("caption"), where)
        yield Row(where, split, image, captions)


SOURCE = Source(read_karpathy)
