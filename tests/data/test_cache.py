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

    def files() -> set[Path]:
        return {path for path in (lors_home / "images").iterdir() if path.suffix != ".lock"}

    before = files()
    with pytest.raises(InputError, match="broken"):
        cached_images([Item("broken", ("x",), broken)], 4, Silent())
    assert files() == before


def test_a_damaged_cache_says_that_it_can_be_deleted(lors_home: Path) -> None:
    items = [item("damaged", 1, [])]
    cached_images(items, 5, Silent())
    path = max((lors_home / "images").glob("*.npy"), key=lambda path: path.stat().st_mtime_ns)
    for content in (path.read_bytes()[:-1], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match="delete it, and it is made again"):
            cached_images(items, 5, Silent())
    np.save(path, np.zeros((1, 3, 6, 6), np.uint8))
    with pytest.raises(InputError, match="delete it, and it is made again"):
        cached_images(items, 5, Silent())
    path.unlink()
    assert cached_images(items, 5, Silent()).shape == (1, 3, 5, 5)
