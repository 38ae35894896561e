"""Photos to search: all below a folder, or those of a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from PIL import Image

from lors.config import DataConfig
from lors.data import Pairs
from lors.data.bad_row import BadRowError
from lors.data.files import SUFFIXES
from lors.data.images import decode_image
from lors.data.pairs import Decoded, Item
from lors.files.digests import file_digests
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["folder_photos", "run_photos"]


def folder_photos(folder: str | Path, progress: Progress) -> list[Item]:
    """The image files below a folder, in the order of their names, without captions.

    Hidden files and folders are left out, and so are links that lead out of the folder.

    Args:
        folder: where to look, at any depth.
        progress: reports long-running work, and how many files were left out.

    Raises:
        InputError: it is no folder, or holds no image files.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"there is no folder of photos {str(folder)!r}")
    root = root.resolve()
    found, refused = [], 0
    for path in _image_files(root):
        if _readable_below(path, root):
            found.append(path)
        else:
            refused += 1
    if refused:
        progress.say(
            f"Left out {refused:,} {'file' if refused == 1 else 'files'} below {str(folder)!r}: "
            "they lead out of the folder or cannot be opened."
        )
    if not found:
        raise InputError(
            f"there are no photos below {str(folder)!r}: it should hold files that end in "
            f"{', '.join(SUFFIXES)}"
        )
    keys = file_digests(root, found, progress)
    return [
        Item(key, (), partial(_decode, path, root), os.path.relpath(path, root))
        for path, key in zip(found, keys, strict=True)
    ]


def run_photos(config: DataConfig, split: str, progress: Progress) -> list[Item]:
    """The images that a run was made from, with their captions.

    Args:
        config: where they are.
        split: train, val or test.
        progress: reports long-running work.

    Raises:
        InputError: the data are embeddings, or cannot be read.
    """
    splits = Pairs({}).items(config, progress)
    if isinstance(splits, Decoded):
        raise InputError("the data of this run are embeddings without photos: give a folder")
    if split not in splits:
        raise InputError(f"unknown split {split!r}; known: {', '.join(splits)}")
    return [
        item if item.name else replace(item, name=f"{split} {number}")
        for number, item in enumerate(splits[split])
    ]


def _image_files(root: Path) -> Iterator[str]:
    """Paths with the suffix of an image; folders behind links are not entered."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and name.lower().endswith(SUFFIXES):
                yield os.path.join(folder, name)


def _readable_below(path: str, root: Path) -> bool:
    """Whether a path is a file in the folder, also after all links are followed."""
    try:
        inside = Path(path).resolve(strict=True).is_relative_to(root)
        return inside and stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except (OSError, RuntimeError):  # a broken link, or one in a circle
        return False


def _decode(path: str, root: Path) -> Image.Image:
    if not _readable_below(path, root):  # it may have become a link since the folder was listed
        raise BadRowError(f"{path!r} is no longer a file below {str(root)!r}", "missing files")
    return decode_image(Path(path), repr(path))
