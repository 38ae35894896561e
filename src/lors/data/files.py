"""Items from image files below a root folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from lors.config import DataConfig
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.errors import InputError

__all__ = ["below", "caption_texts", "file_items", "root_folder"]

CAPTION_LENGTH = 100_000
"""Far beyond any caption: something else is in the column."""
NO_TEXT = re.compile("[\0\ud800-\udfff]")


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
    short = repr(name if len(name) < 200 else name[:200] + "…")
    try:
        path = (root / name).resolve()
        found = path.is_file()
    except (OSError, ValueError, RuntimeError):
        raise InputError(f"{where}: {short} cannot be the name of a file") from None
    if not path.is_relative_to(root):
        raise InputError(f"{where}: {short} points outside the root folder {str(root)!r}")
    if not found:
        raise InputError(f"{where}: there is no file {short} below {str(root)!r}")
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
        InputError: it is neither, or a text is empty, too long, or no text that a file can hold;
            ``where`` names it in the message.
    """
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if len(texts) < len(values):
        raise InputError(f"{where}: the caption must be text or a list of texts")
    captions = tuple(" ".join(text.split()) for text in texts)
    if not captions or not all(captions):
        raise InputError(f"{where}: the caption is empty")
    for caption in captions:
        _check_caption(caption, where)
    return captions


def _check_caption(caption: str, where: str) -> None:
    if len(caption) > CAPTION_LENGTH:
        raise InputError(f"{where}: a caption of {len(caption):,} characters is no caption")
    if NO_TEXT.search(caption):
        raise InputError(
            f"{where}: the caption holds characters that no text has (NUL, or half of a surrogate "
            "pair)"
        )
