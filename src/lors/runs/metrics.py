"""The records of ``metrics.jsonl``, one per iteration, read past lines that are damaged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Metrics", "read_metrics"]


class Metrics(NamedTuple):
    """What a file of metrics holds.

    Args:
        records: those that are whole, in the order of the file.
        damaged: how many lines are not.
    """

    records: list[dict[str, Any]]
    damaged: int

    def warning(self, path: Path) -> str:
        """What to tell the user about damaged lines."""
        lines = "1 damaged line" if self.damaged == 1 else f"{self.damaged} damaged lines"
        return f"Warning: {lines} of {str(path)!r} skipped; the distilled set is not affected."


def read_metrics(path: Path) -> Metrics:
    """Read what is whole in a file of metrics; without the file, nothing.

    A power cut may leave zeros or half a line. The end of the file is not damage if only its last
    line is cut short: so does a kill, and the iteration of that line is repeated.
    """
    if not path.is_file():
        return Metrics([], 0)
    *lines, _ = path.read_bytes().split(b"\n")
    records = [_record(line) for line in lines]
    whole = [record for record in records if record is not None]
    return Metrics(whole, len(records) - len(whole))


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a line; none if it is not one."""
    try:
        record = json.loads(line)
        numbers = {name: float(value) for name, value in record.items()}  # too long a one raises
        plain = all(type(value) in (int, float) for value in record.values())
        # A loss may be infinite, if a matcher lets it; the clock may not.
        whole = plain and math.isfinite(numbers["seconds"]) and 0 <= record["iteration"] < 2**53
        return record if whole and type(record["iteration"]) is int else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
