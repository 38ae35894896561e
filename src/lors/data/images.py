"""Decoding of image files that nobody has looked at."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from lors.data.bad_row import BadRowError

__all__ = ["decode_image"]

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""Only these: others of Pillow's decoders are little used, and that of EPS runs a program."""


def decode_image(file: Path | bytes, where: str) -> Image.Image:
    """Decode an image file, or the bytes of one: upright, in RGB, transparency over white.

    Of an animation, it is the first frame.

    Raises:
        BadRowError: it is broken, truncated, too large, or no image; ``where`` names it.
    """
    try:
        source = io.BytesIO(file) if isinstance(file, bytes) else file
        with Image.open(source, formats=FORMATS) as image:
            _refuse_bomb(image)
            return _rgb(ImageOps.exif_transpose(image))
    except Exception as error:  # on damaged files, decoders raise anything
        reason = str(error) or type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            reason = f"not an image of {', '.join(FORMATS)}"
        raise BadRowError(
            f"cannot read the image of {where}: {reason}; replace it or remove its row",
            "unreadable images",
        ) from None


def _refuse_bomb(image: Image.Image) -> None:
    """Pillow refuses images of twice its limit; between once and twice, it only warns."""
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        raise ValueError(f"{image.width} x {image.height} pixels are more than {limit:,}")


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits of grey, all of which convert() would clip to white
        image = Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")
