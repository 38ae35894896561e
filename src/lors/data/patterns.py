"""Patterns of shards below a root folder: ``train-{000..003}.tar``, ``{a,b}.npy``, ``part-*``."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lors.data.files import below
from lors.errors import InputError

__all__ = ["matching_files"]

SHARDS = 100_000
"""The most names that a pattern is written out to."""


def matching_files(root: Path, pattern: str, where: str) -> list[Path]:
    """The files that a pattern stands for: braces in their order, globs sorted.

    Args:
        root: the folder they lie below.
        pattern: relative to it, or below it.
        where: the setting, for messages.

    Raises:
        InputError: it leads outside, stands for too many names, or no file matches.
    """
    if Path(pattern).is_absolute():
        if not Path(pattern).is_relative_to(root):
            raise InputError(f"{where}: {pattern!r} is not below the root folder {str(root)!r}")
        pattern = str(Path(pattern).relative_to(root))
    names = list(islice(_expand(pattern), SHARDS + 1))
    if len(names) > SHARDS:
        raise InputError(f"{where}: {pattern!r} stands for more than {SHARDS:,} names")
    shards = [below(root, found, where) for name in names for found in _matches(root, name, where)]
    if not shards:
        raise InputError(f"{where}: no shard below {str(root)!r} matches {pattern!r}")
    return list(dict.fromkeys(shards))


def _matches(root: Path, name: str, where: str) -> list[str]:
    if not glob.has_magic(name):
        return [name]
    try:
        return sorted(glob.glob(name, root_dir=root))
    except (OSError, ValueError, re.error) as error:
        raise InputError(f"{where}: {name!r} cannot be a pattern of files: {error}") from None


def _expand(pattern: str) -> Iterator[str]:
    """Write out the braces of a pattern: ``{000..003}`` counts, ``{a,b}`` lists."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    count = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", braces[1])
    parts: Iterator[str] = iter(braces[1].split(","))
    if count:
        numbers = range(int(count[1]), int(count[2]) + 1)
        parts = (f"{number:0{len(count[1])}d}" for number in numbers)
    for part in parts:
        yield from _expand(pattern[: braces.start()] + part + pattern[braces.end() :])
