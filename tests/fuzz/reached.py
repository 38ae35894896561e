"""Which steps from line to line of the package an input takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lors

PACKAGE = str(Path(lors.__file__).parent) + "/"
Step = tuple[str, int, int]
"""A file, the line before in the same call (0: none) and the line."""

EVENTS = 50_000
"""Calls and lines after which an input runs on untraced, at full speed: loops take no new steps."""

Trace = Callable[[FrameType, str, Any], Any]


class Reached:
    """Records the steps inside the package while it is entered; other code runs on untraced.

    ``steps`` holds those since it was last entered.
    """

    def __init__(self, package: str = PACKAGE) -> None:
        self.steps: set[Step] = set()
        self._package = package
        self._files: dict[CodeType, str | None] = {}
        self._before: Any = None
        self._left = 0

    def __enter__(self) -> Reached:
        self.steps, self._left = set(), EVENTS
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Trace | None:
        self._count()
        code = frame.f_code
        if code not in self._files:
            inside = code.co_filename.startswith(self._package)
            self._files[code] = code.co_filename[len(self._package) :] if inside else None
        file = self._files[code]
        if file is None:
            return None
        add, last = self.steps.add, 0

        def step(frame: FrameType, event: str, arg: Any) -> Trace:
            nonlocal last
            if event == "line":
                self._count()
                add((file, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step

    def _count(self) -> None:
        self._left -= 1
        if not self._left:
            sys.settrace(None)
