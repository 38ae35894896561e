"""Which files call which: how tangled the code is that a run goes through.

    python benchmarks/traced.py [COMMAND …]      default: distill tiny

Runs a command of ``lors`` in this process and prints how many files of the package take part, how
many ordered pairs of files have calls between them, and how many pairs call each other both ways,
which it lists.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import lors

PACKAGE = str(Path(lors.__file__).parent)


def main() -> None:
    words = sys.argv[1:] or ["distill", "tiny"]
    files: set[str] = set()
    edges: set[tuple[str, str]] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":  # an import is no call
            return
        callee, caller = frame.f_code.co_filename, frame.f_back
        if not callee.startswith(PACKAGE):
            return
        files.add(callee)
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back  # through torch and the like
        if caller is not None and caller.f_code.co_filename != callee:
            edges.add((caller.f_code.co_filename, callee))

    from lors.cli import app

    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            app([*words, "--out", f"{folder}/run"], standalone_mode=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    mutual = sorted((a, b) for a, b in edges if a < b and (b, a) in edges)
    for a, b in mutual:
        print(*(path.removeprefix(PACKAGE + "/") for path in (a, b)), sep=" <-> ")
    print(f"{len(files)} files, {len(edges)} edges, {len(mutual)} pairs both ways")


if __name__ == "__main__":
    main()
