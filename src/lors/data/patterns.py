"""Patterns of shards below a root folder: ``train-{000..003}.tar``, ``{a,b}.npy``, ``part-*``.

A pattern may come from a stranger's configuration: how many names its braces stand for is counted
before any is written out, and how many files its wildcards may look at is bounded.
"""

from __future__ import annotations

import fnmatch
import glob
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple, Union

from lors.data.files import below
from lors.system.errors import InputError, shortened

__all__ = ["matching_files"]

LENGTH = 4096
"""The longest pattern, which is that of a path."""
BRACES = 50
"""The most braces of a pattern."""
SHARDS = 100_000
"""The most names that a pattern is written out to, and the most files that it may match."""
VISITED = 1_000_000
"""The most files that the wildcards of a pattern look at, which takes seconds."""
WILDCARD = 100
"""What it costs to prepare a wildcard, in files looked at; and for long ones,"""
CHARACTER = 4
"""each of their characters."""


def matching_files(root: Path, pattern: str, where: str) -> list[Path]:
    """The files that a pattern stands for: braces in their order, globs sorted.

    Args:
        root: the folder they lie below.
        pattern: relative to it, or below it.
        where: the setting, for messages.

    Raises:
        InputError: it leads outside, stands for too many names, or no file matches.
    """
    short = repr(shortened(pattern))
    if len(pattern) > LENGTH:
        raise InputError(f"{where}: {short} is longer than any path")
    if Path(pattern).is_absolute():
        if not Path(pattern).is_relative_to(root):
            raise InputError(f"{where}: {short} is not below the root folder {str(root)!r}")
        pattern = str(Path(pattern).relative_to(root))
    if pattern.count("{") > BRACES:
        raise InputError(f"{where}: {short} has more than {BRACES} braces")
    row = _parsed(pattern)
    if _count(row) > SHARDS:
        raise InputError(f"{where}: {short} stands for more than {SHARDS:,} names")
    shards: dict[Path, None] = {}
    visits = _Visits(f"{where}: {short}")
    seen: set[str] = set()
    for name in _names(row):
        for found in _matches(root, name, visits) if name not in seen else ():
            shards[below(root, found, where)] = None
            if len(shards) > SHARDS:
                raise InputError(f"{where}: {short} matches more than {SHARDS:,} files")
        seen.add(name)
    if not shards:
        raise InputError(f"{where}: no shard below {str(root)!r} matches {short}")
    return list(shards)


class _Numbers(NamedTuple):
    """``{008..011}``."""

    range: range
    width: int


Part = Union[str, _Numbers, tuple["Row", ...]]  # noqa: UP007 - a string cannot stand in |
"""Of a pattern: text, numbers, or what braces list."""
Row = list[Part]


def _parsed(pattern: str) -> Row:
    """The parts of a pattern; a brace without its counterpart is text."""
    open_braces: list[list[Row]] = [[[]]]
    for token in re.split(r"([{},])", pattern):
        inside = len(open_braces) > 1
        if token == "{":
            open_braces.append([[]])
        elif token == "}" and inside:
            rows = open_braces.pop()
            _add(open_braces[-1][-1], _numbers(rows) or tuple(rows))
        elif token == "," and inside:
            open_braces[-1].append([])
        else:
            _add(open_braces[-1][-1], token)
    while len(open_braces) > 1:
        rows = open_braces.pop()
        for number, row in enumerate(rows):
            _add(open_braces[-1][-1], "," if number else "{", *row)
    return open_braces[0][0]


def _add(row: Row, *parts: Part) -> None:
    """Put parts at the end, text to text: a pattern has few parts, however long it is."""
    for part in parts:
        if row and isinstance(part, str) and isinstance(row[-1], str):
            row[-1] += part
        elif part != "":
            row.append(part)


def _numbers(rows: list[Row]) -> _Numbers | None:
    """The numbers that braces count, if that is what they do."""
    (first, *others), *more = rows[0] or [""], *rows[1:]
    bounds = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", first) if isinstance(first, str) else None
    if bounds is None or others or more:
        return None
    return _Numbers(range(int(bounds[1]), int(bounds[2]) + 1), len(bounds[1]))


def _count(row: Row) -> int:
    """How many names a pattern stands for."""
    counts = []
    for part in row:
        if isinstance(part, _Numbers):
            counts.append(len(part.range))
        elif not isinstance(part, str):
            counts.append(sum(map(_count, part)))
    return math.prod(counts)


def _names(row: Row) -> Iterator[str]:
    """The names that a pattern stands for, one at a time."""
    if not _count(row):  # without this, {1..999999999}{2..1} would count for minutes, and give none
        return
    if not row:
        yield ""
        return
    for start in _options(row[0]):
        for rest in _names(row[1:]):
            yield start + rest


def _options(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, _Numbers):
        for number in part.range:
            yield f"{number:0{part.width}d}"
    else:
        for row in part:
            yield from _names(row)


class _Visits:
    """Counts the files that wildcards look at.

    Args:
        what: the setting and its pattern, for the message.
    """

    def __init__(self, what: str) -> None:
        self.what, self.count = what, 0

    def spend(self, count: int) -> None:
        self.count += count
        if self.count > VISITED:
            raise InputError(
                f"{self.what} would look at more than {VISITED:,} files: name folders instead of "
                "wildcards"
            )


def _matches(root: Path, name: str, visits: _Visits) -> list[str]:
    """The files below a root whose names match, sorted; a name without wildcards is itself."""
    if not glob.has_magic(name):
        return [name]
    *folders, last = PurePath(name).parts
    if ".." in (*folders, last):
        raise InputError(f"{visits.what} may point outside the root folder: leave out '..'")
    try:
        found = [root]
        for part in folders:
            inside = (path for folder in found for path in _inside(folder, part, visits))
            found = [path for path in inside if path.is_dir()]
        files = [path for folder in found for path in _inside(folder, last, visits)]
    except (OSError, ValueError, re.error) as error:
        raise InputError(f"{visits.what} cannot be a pattern of files: {error}") from None
    return sorted(str(path.relative_to(root)) for path in files)


def _inside(folder: Path, part: str, visits: _Visits) -> Iterator[Path]:
    """What in a folder matches one part of a pattern; ``*`` stands for no hidden file."""
    visits.spend(max(WILDCARD, CHARACTER * len(part)))
    if not glob.has_magic(part):
        if os.path.lexists(folder / part):
            yield folder / part
        return
    matches = re.compile(fnmatch.translate(os.path.normcase(part))).match
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                visits.spend(1)
                hidden = entry.name.startswith(".") and not part.startswith(".")
                if not hidden and matches(os.path.normcase(entry.name)):
                    yield folder / entry.name
    except PermissionError:  # as for a shell, there is nothing in it
        return
