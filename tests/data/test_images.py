"""Image files as they come from the web."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile

from lors.data.decoded import cached_images
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.system.errors import InputError
from lors.system.progress import Silent


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def first_pixel(data: bytes) -> tuple[int, ...]:
    image = decode_image(data, "it")
    assert image.mode == "RGB"
    return tuple(np.asarray(image)[0, 0].tolist())


def test_sixteen_bits_of_grey_become_eight_and_not_white() -> None:
    grey = Image.fromarray(np.full((2, 2), 0x8000, np.uint16))
    assert first_pixel(saved(grey, "PNG")) == (128, 128, 128)
    assert first_pixel(saved(grey, "TIFF")) == (128, 128, 128)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_transparency_is_seen_over_white(mode: str, kind: str) -> None:
    if mode in ("RGBA", "LA"):
        image, options = Image.new(mode, (3, 3), 0), {}
    elif kind == "PNG":
        transparent: dict[str, Any] = {"P": 0, "L": 0, "RGB": (0, 0, 0)}
        image, options = Image.new(mode, (3, 3)), {"transparency": transparent[mode]}
    else:
        pytest.skip("only PNG marks a colour as transparent")
    assert first_pixel(saved(image, kind, **options)) == (255, 255, 255)


def test_cmyk_palettes_and_single_bits_become_rgb() -> None:
    red = Image.new("RGB", (8, 8), (200, 0, 0))
    assert first_pixel(saved(red.convert("CMYK"), "JPEG")) == pytest.approx((200, 0, 0), abs=3)
    assert first_pixel(saved(red.quantize(4), "GIF")) == pytest.approx((200, 0, 0), abs=3)
    assert first_pixel(saved(Image.new("1", (8, 8), 1), "PNG")) == (255, 255, 255)


def test_an_animation_is_its_first_frame() -> None:
    frames = [Image.new("RGB", (4, 4), (grey,) * 3) for grey in (10, 200, 100)]
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        options = {"lossless": True} if kind == "WEBP" else {}
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert first_pixel(data) == (10, 10, 10)


def test_a_photo_taken_sideways_is_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode_image(saved(Image.new("RGB", (8, 2)), "JPEG", exif=exif), "it").size == (2, 8)


@pytest.mark.parametrize("size", [(1, 1), (1, 20_000), (20_000, 1)])
def test_extreme_shapes_are_resized_like_any(size: tuple[int, int]) -> None:
    data = saved(Image.new("RGB", size, (7, 8, 9)), "PNG")
    item = Item(f"extreme {size}", ("x",), lambda: decode_image(data, "it"))
    images = cached_images([item], 4, Silent())
    assert images[0, :, 2, 2].tolist() == [7, 8, 9]


def png_that_claims(width: int, height: int) -> bytes:
    """A few bytes that decode to as many pixels as they say."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(bytes((width // 8 + 1) * 10))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [9_500, 13_500, 60_000])  # just above, and twice, Pillow's limit
def test_a_bomb_is_refused_where_pillow_only_warns_too(side: int) -> None:
    with pytest.raises(InputError, match=r"image of photo 7: .*pixels"):
        decode_image(png_that_claims(side, side), "photo 7")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
def test_a_truncated_image_is_named(kind: str) -> None:
    whole = saved(Image.effect_noise((64, 64), 80).convert("RGB"), kind)
    with pytest.raises(InputError, match=r"cannot read the image of photo 7"):
        decode_image(whole[: len(whole) // 2], "photo 7")
    assert not ImageFile.LOAD_TRUNCATED_IMAGES


def test_formats_that_run_programs_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(saved(Image.new("RGB", (4, 4)), "EPS"))
    with pytest.raises(InputError, match="not an image of JPEG"):
        decode_image(path, "it")
