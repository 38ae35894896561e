"""The command line without heavy imports."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.speed.ratio import Ratio, median_seconds, side_by_side

__all__ = ["ratios"]

PLAIN = "import lors.runs.pipeline, lors.cli; lors.cli.main()"
"""A command line that imports at its top what its commands use."""


def help_text(*before: str) -> str:
    """What a command prints when it is asked for help."""
    command = [sys.executable, *before, "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ratios(rounds: int) -> list[Ratio]:
    """``lors --help`` in a process of its own, and the same with all imports first."""
    empty = [sys.executable, "-c", "pass"]
    nothing = median_seconds(lambda: subprocess.run(empty, check=True), rounds)
    return [
        side_by_side(
            "lors --help",
            lambda: help_text("-m", "lors"),
            lambda: help_text("-c", PLAIN),
            rounds,
            more={"seconds of an empty Python": nothing},
        )
    ]
