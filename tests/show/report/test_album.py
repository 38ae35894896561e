from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from lors.show.report import album
from lors.show.report.album import Album


def noise(seed: int, side: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (3, side, side), np.uint8)


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_everything_is_kept_once() -> None:
    shown = Album()
    numbers = [shown.picture(key, noise(key, 8)) for key in (4, 7, 4)]
    assert numbers == [0, 1, 0]
    assert [shown.caption(text) for text in ("a", "b", "a")] == [0, 1, 0]
    assert shown.captions() == ["a", "b"]
    assert len(shown.pictures()) == 2


def test_small_pictures_keep_every_pixel() -> None:
    shown, pixels = Album(), noise(0, 32)
    shown.picture(0, pixels)
    (uri,) = shown.pictures()
    assert (np.asarray(opened(uri).convert("RGB")).transpose(2, 0, 1) == pixels).all()


def test_many_pictures_are_made_small_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(album, "LIMIT", 100_000)
    shown = Album()
    for key in range(20):
        shown.picture(key, noise(key, 224))
    uris = shown.pictures()
    assert sum(map(len, uris)) < 110_000
    assert opened(uris[0]).width in album.SIDES
