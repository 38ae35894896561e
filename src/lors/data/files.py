"""Items from image files below a root folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from PIL import Image, ImageOps

from lors.config import DataConfig
from lors.data.pairs import Item
from lors.errors import InputError

__all__ = ["below", "file_items", "open_image", "root_folder"]


def root_folder(config: DataConfig) -> Path:
    """The folder a file-based source reads from."""
    if config.root is None:
        raise InputError(f"data source {config.source!r} needs a folder: set data.root")
    root = config.root.expanduser()
    if not root.is_dir():
        raise InputError(f"data.root {str(root)!r} is not a folder")
    return root.resolve()


def below(root: Path, name: str, where: str) -> Path:
    """The file ``name`` below ``root``; refuses paths that lead outside, also through links."""
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise InputError(f"{where}: {name!r} points outside the root folder {str(root)!r}")
    if not path.is_file():
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
        text = " ".join(caption.split())
        if not text:
            raise InputError(f"{where}: the caption of {image!r} is empty")
        captions.setdefault(image, []).append(text)
        first.setdefault(image, where)
    return [_item(root, image, tuple(texts), first) for image, texts in captions.items()]


def _item(root: Path, image: str, captions: tuple[str, ...], first: Mapping[str, str]) -> Item:
    path = below(root, image, first[image])
    stat = path.stat()
    return Item(f"{image}|{stat.st_size}|{stat.st_mtime_ns}", captions, partial(open_image, path))


def open_image(path: Path) -> Image.Image:
    """Decode an image file, upright.

    Raises:
        InputError: the file is broken, truncated, too large, or no image.
    """
    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(
            f"cannot read the image {str(path)!r}: {error}; replace it or remove its row"
        ) from None
