"""Items from image files below a root folder."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from lors.config import DataConfig
from lors.data.pairs import Item
from lors.errors import InputError

__all__ = ["below", "caption_texts", "decode_image", "file_items", "root_folder"]


def root_folder(config: DataConfig) -> Path:
    """The folder a file-based source reads from."""
    if config.root is None:
        raise InputError(f"data source {config.source!r} needs a folder: set data.root")
    root = config.root
    if not root.is_dir():
        raise InputError(f"data.root {str(root)!r} is not a folder")
    return root.resolve()


def below(root: Path, name: str, where: str) -> Path:
    """The file ``name`` below ``root``; refuses paths that lead outside, also through links."""
    try:
        path = (root / name).resolve()
        found = path.is_file()
    except (OSError, ValueError, RuntimeError):
        raise InputError(f"{where}: {name[:60]!r} cannot be the name of a file") from None
    if not path.is_relative_to(root):
        raise InputError(f"{where}: {name!r} points outside the root folder {str(root)!r}")
    if not found:
        raise InputError(f"{where}: there is no file {name!r} below {str(root)!r}")
    return path


def file_items(root: Path, rows: Iterable[tuple[str, str, str]]) -> list[Item]:
    """Group (image, caption, where) rows by image, in order of first appearance.

    Args:
        root: the folder that image names are relative to.
        rows: ``where`` names the row in error messages.
    """
    captions: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for image, caption, where in rows:
        texts = caption_texts(caption, f"{where}, image {image!r}")
        captions.setdefault(image, []).extend(texts)
        first.setdefault(image, where)
    return [_item(root, image, tuple(texts), first) for image, texts in captions.items()]


def _item(root: Path, image: str, captions: tuple[str, ...], first: Mapping[str, str]) -> Item:
    path = below(root, image, first[image])
    stat = path.stat()
    key = f"{image}|{stat.st_size}|{stat.st_mtime_ns}"
    return Item(key, captions, partial(decode_image, path, str(path)))


def caption_texts(value: object, where: str) -> tuple[str, ...]:
    """The captions in a value that should be a text or a list of texts.

    Raises:
        InputError: it is neither, or a text is empty; ``where`` names it in the message.
    """
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if len(texts) < len(values):
        raise InputError(f"{where}: the caption must be text or a list of texts")
    captions = tuple(" ".join(text.split()) for text in texts)
    if not captions or not all(captions):
        raise InputError(f"{where}: the caption is empty")
    return captions


def decode_image(file: Path | bytes, where: str) -> Image.Image:
    """Decode an image file, or the bytes of one, upright.

    Raises:
        InputError: it is broken, truncated, too large, or no image; ``where`` names it.
    """
    try:
        with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = "not an image" if isinstance(error, UnidentifiedImageError) else error
        raise InputError(
            f"cannot read the image of {where}: {reason}; replace it or remove its row"
        ) from None
