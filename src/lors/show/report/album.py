"""Pictures and captions of a page, each kept once however often it is shown."""

from __future__ import annotations

import base64
import io
from collections.abc import Hashable

import numpy as np
from PIL import Image

__all__ = ["CRISP", "Album"]

LIMIT = 10_000_000
"""Characters that all pictures together may take."""
SIDES = (224, 160, 112, 80, 56)
"""Sides of thumbnails in pixels, from the one we like to the one that always fits."""
CRISP = 64
"""Up to this side, pictures are kept without loss: every pixel of theirs can be seen."""


class Album:
    """Collects pictures and captions, and gives each a number."""

    def __init__(self) -> None:
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
        fitting = (side for side in SIDES if _characters(sample, side) * len(every) <= LIMIT)
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
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
