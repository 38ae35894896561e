"""Karpathy/BLIP annotations, as Flickr8k, Flickr30k and COCO use them.

A JSON list per split. A row is ``{"image": path, "caption": text}``, once per caption, or with the
list of captions of the image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lors.config import DataConfig
from lors.data.files import Row, below, file_items, root_folder
from lors.data.pairs import Item
from lors.data.source import Source
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["SOURCE", "read_karpathy"]


def read_karpathy(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """The splits named in ``config.annotations``."""
    root = root_folder(config)
    if "train" not in config.annotations:
        raise InputError("data source 'karpathy' needs data.annotations.train, a JSON file")
    rows = {
        split: _rows(below(root, name, f"data.annotations.{split}"))
        for split, name in config.annotations.items()
    }
    return file_items(root, rows, progress)


def _rows(path: Path) -> Iterator[Row]:
    try:
        rows = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the annotations {str(path)!r}: {error}") from None
    if not isinstance(rows, list):
        raise InputError(f"{str(path)!r} must be a JSON list of rows with image and caption")
    for number, row in enumerate(rows):
        where = f"{path.name} row {number}"
        image, caption = (
            (row.get("image"), row.get("caption")) if isinstance(row, dict) else (None, None)
        )
        captions = caption if isinstance(caption, list) else [caption]
        if not isinstance(image, str) or not captions:
            raise InputError(f"{where} needs an image and at least one caption")
        for text in captions:
            if not isinstance(text, str):
                raise InputError(f"{where}: the caption of {image!r} must be text")
            yield image, text, where


SOURCE = Source(read_karpathy)
