"""Pictures and captions of a page, each kept once however often it is shown."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from PIL import Image

__all__ = ["CRISP", "Album", "sprite"]

LIMIT = 10_000_000
"""Characters that all pictures of a gallery together may take."""
SIDES = (224, 160, 112, 80, 56)
"""Sides of thumbnails in pixels, from the one we like to the one that always fits."""
CRISP = 64
"""Up to this side, pictures are kept without loss: every pixel of theirs can be seen."""

TILE = 40
"""Side of the pictures in a sprite."""


class Album:
    """Collects pictures and captions, and gives each a number.

    Args:
        limit: characters that all pictures together may take; default: ``LIMIT``.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = LIMIT if limit is None else limit
        self._pictures: dict[Hashable, np.ndarray] = {}
        self._places: dict[Hashable, int] = {}
        self._captions: dict[str, int] = {}

    def picture(self, key: Hashable, pixels: np.ndarray) -> int:
        """The number of a picture; the same key is the same picture.

        Args:
            key: identifies it.
            pixels: Shape: (3, height, width), uint8
        """
        self._pictures.setdefault(key, pixels)
        return self._places.setdefault(key, len(self._places))

    def caption(self, text: str) -> int:
        """The number of a caption."""
        return self._captions.setdefault(text, len(self._captions))

    def captions(self) -> list[str]:
        """All captions, by number."""
        return list(self._captions)

    def pictures(self) -> list[str]:
        """All pictures as data URIs, by number, as large as fits."""
        every = list(self._pictures.values())
        sample = every[:: max(1, len(every) // 16)]
        fitting = (side for side in SIDES if _characters(sample, side) * len(every) <= self._limit)
        side = next(fitting, SIDES[-1])
        return [_data_uri(pixels, side) for pixels in every]


def _characters(sample: list[np.ndarray], side: int) -> float:
    """How long a data URI is on average."""
    return sum(len(_data_uri(p, side)) for p in sample) / max(1, len(sample))


def _data_uri(pixels: np.ndarray, side: int) -> str:
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, "WEBP", quality=80, lossless=max(image.size) <= CRISP)
    return _webp_uri(file)


def _webp_uri(file: io.BytesIO) -> str:
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def sprite(images: np.ndarray) -> dict[str, Any]:
    """Many small pictures in one, row by row: far smaller than as many files.

    Args:
        images: Shape: (m, 3, size, size), uint8

    Returns:
        Its data URI, the side of a picture in pixels, and how many stand in a row.
    """
    side, columns = min(TILE, images.shape[-1]), math.ceil(math.sqrt(len(images)))
    sheet = Image.new("RGB", (columns * side, -(-len(images) // columns) * side))
    for place, pixels in enumerate(images):
        picture = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
        small = picture.resize((side, side), Image.Resampling.BOX)
        sheet.paste(small, (place % columns * side, place // columns * side))
    file = io.BytesIO()
    sheet.save(file, "WEBP", quality=50, method=4)
    return {"uri": _webp_uri(file), "side": side, "columns": columns}
