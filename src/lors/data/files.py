"""Items from image files below a root folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.data.problems import Problems
from lors.files.digests import file_digests
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["Row", "below", "caption_texts", "file_items", "image_name", "root_folder"]

Found = tuple[str, os.stat_result]
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")

CAPTION_LENGTH = 100_000
"""Far beyond any caption: something else is in the column."""
NO_TEXT = re.compile("[\0\ud800-\udfff]")


class Row(NamedTuple):
    """What a table says of an image. Parts with a problem are None or empty.

    Args:
        where: names the row in messages.
        split: train, val or test.
        image: a file below the root.
        captions: one or more.
    """

    where: str
    split: str | None
    image: str | None
    captions: tuple[str, ...]


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
        raise BadRowError(
            f"{where}: {short} cannot be the name of a file", "names that are none"
        ) from None
    if not path.is_relative_to(root):
        raise BadRowError(
            f"{where}: {short} points outside the root folder {str(root)!r}",
            "paths outside the root",
        )
    if not found:
        raise BadRowError(f"{where}: there is no file {short} below {str(root)!r}", "missing files")
    return path


def file_items(
    root: Path,
    rows: Iterable[Row],
    problems: Problems,
    progress: Progress,
    splits: Iterable[str] = (),
) -> dict[str, list[Item]]:
    """Group the rows of each split by image, in order of first appearance.

    Args:
        root: the folder that image names are relative to.
        rows: of all splits.
        problems: those of the rows; files that are not there are added, and all are settled.
        progress: reports long-running work, and image files without captions.
        splits: come first, also those without rows.

    Raises:
        BadDataError: there are problems.
    """
    captions: dict[str, dict[str, list[str]]] = {split: {} for split in splits}
    first: dict[str, str] = {}
    count = 0
    for row in rows:
        count += 1
        if row.image is not None:
            first.setdefault(row.image, row.where)
            if row.split is not None and row.captions:
                here = captions.setdefault(row.split, {})
                here.setdefault(row.image, []).extend(row.captions)
    files = _find(root, first, problems)
    problems.settle(count)
    paths = [path for path, _ in files.values()]
    digests = file_digests(root, paths, progress, [stat for _, stat in files.values()])
    keys = dict(zip(files, digests, strict=True))
    _tell_of_others(paths, progress)
    return {
        split: [
            Item(keys[image], tuple(texts), partial(_decode, files[image][0], first[image]), image)
            for image, texts in here.items()
            if image in files
        ]
        for split, here in captions.items()
    }


def _find(root: Path, first: Mapping[str, str], problems: Problems) -> dict[str, Found]:
    """Where each image is, and its status. Folders are looked at once: there may be many images."""
    folders: dict[str, str | None] = {}
    found = {}
    for name, where in first.items():
        folder, base = os.path.split(name)
        if folder not in folders:
            folders[folder] = _folder_below(root, folder)
        with problems:
            found[name] = _regular(folders[folder], base) or _linked(root, name, where)
    return found


def _regular(folder: str | None, base: str) -> Found | None:
    """A file in a folder; None if it is a link or anything else, which takes a closer look."""
    if folder is None:
        return None
    try:
        path = os.path.join(folder, base)
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (path, status) if stat.S_ISREG(status.st_mode) else None


def _linked(root: Path, name: str, where: str) -> Found:
    path = str(below(root, name, where))
    return path, os.stat(path)


def _decode(path: str, where: str) -> Image.Image:
    return decode_image(Path(path), f"{where}, {path!r}")


def _folder_below(root: Path, name: str) -> str | None:
    """A folder below the root without links in its path; None if it is none."""
    try:
        path = (root / name).resolve()
        return str(path) if path.is_dir() and path.is_relative_to(root) else None
    except (OSError, ValueError, RuntimeError):
        return None


def _tell_of_others(paths: Iterable[str], progress: Progress) -> None:
    """Say how many images lie beside these that no caption names."""
    named = set(paths)
    others = 0
    for folder in {os.path.dirname(path) for path in named}:
        with os.scandir(folder) as entries:
            others += sum(
                entry.name.lower().endswith(SUFFIXES) and entry.path not in named
                for entry in entries
            )
    if others:
        progress.say(f"Image files without a caption, which are left out: {others:,}.")


def image_name(value: object, where: str) -> str:
    """The name of an image file in a row.

    Raises:
        BadRowError: there is none.
    """
    if not isinstance(value, str) or not value:
        raise BadRowError(f"{where} needs an image: the name of its file", "captions without image")
    return value


def caption_texts(value: object, where: str) -> tuple[str, ...]:
    """The captions in a value that should be a text or a list of texts.

    Raises:
        BadRowError: it is neither, or a text is empty, too long, or no text that a file can hold;
            ``where`` names it in the message.
    """
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if len(texts) < len(values):
        missing = "is missing: it " if value is None else ""
        kind = "missing captions" if value is None else "captions that are no text"
        raise BadRowError(f"{where}: the caption {missing}must be text or a list of texts", kind)
    if not texts:
        raise BadRowError(
            f"{where}: the caption is empty: give at least one caption", "empty captions"
        )
    return tuple(_caption(text, where) for text in texts)


def _caption(text: str, where: str) -> str:
    caption = " ".join(text.split())
    if not caption:
        raise BadRowError(f"{where}: the caption is empty", "empty captions")
    if len(caption) > CAPTION_LENGTH:
        raise BadRowError(
            f"{where}: a caption of {len(caption):,} characters is no caption",
            "captions that are too long",
        )
    if NO_TEXT.search(caption):
        raise BadRowError(
            f"{where}: the caption holds characters that no text has (NUL, or half of a surrogate "
            "pair), or the file is not UTF-8",
            "captions that are no text",
        )
    return caption
