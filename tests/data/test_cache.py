from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lors.data.cache import cached_images
from lors.data.pairs import Item
from lors.errors import InputError
from lors.progress import Silent


def item(key: str, grey: int, decoded: list[str]) -> Item:
    def load() -> Image.Image:
        decoded.append(key)
        return Image.new("RGB", (5, 3), (grey,) * 3)

    return Item(key, ("x",), load)


def test_images_are_decoded_once_per_content_and_size() -> None:
    decoded: list[str] = []
    items = [item("cache a", 1, decoded), item("cache b", 2, decoded)]
    first, second = (cached_images(items, 4, Silent()) for _ in range(2))
    assert sorted(decoded) == ["cache a", "cache b"]
    assert isinstance(second, np.memmap)
    assert second.shape == (2, 3, 4, 4)
    assert np.array_equal(first, second)
    cached_images(items, 6, Silent())
    cached_images([item("cache c", 1, decoded)], 4, Silent())
    assert len(decoded) == 5


def test_a_failed_decode_leaves_nothing_behind(lors_home: Path) -> None:
    def broken() -> Image.Image:
        raise InputError("broken")

    before = set((lors_home / "images").iterdir())
    with pytest.raises(InputError, match="broken"):
        cached_images([Item("broken", ("x",), broken)], 4, Silent())
    assert set((lors_home / "images").iterdir()) == before
