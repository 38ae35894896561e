"""The logbook of a run: its metrics and its last two checkpoints."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from lors.distillation.state import State
from lors.files import artifacts
from lors.runs import checkpoints
from lors.runs.folders import LOG
from lors.runs.metrics import read_metrics
from lors.system import ranks
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["Logbook"]

CHECKPOINTS = ("checkpoint.safetensors", "checkpoint-previous.safetensors")


class Logbook:
    """What a run writes down while it goes on, so that it can go on after any end.

    All ranks read it and rank 0 writes it.

    Args:
        folder: the run directory.
    """

    def __init__(self, folder: Path) -> None:
        self.metrics = folder / LOG
        self.newest, self.previous = (folder / name for name in CHECKPOINTS)
        self._earlier, self._begun = 0.0, time.monotonic()

    def resume(self, state: State, progress: Progress) -> None:
        """Continue from the newest checkpoint that is whole; what was logged beyond it is dropped.

        Raises:
            InputError: there are checkpoints, but none that fits.
        """
        found = [path for path in (self.newest, self.previous) if path.exists()]
        for path in found:
            try:
                checkpoints.load(path, state)
                break
            except InputError as error:
                if path == found[-1]:
                    raise
                progress.say(f"{error}; going on from the checkpoint before it.")
        logged = read_metrics(self.metrics)
        if logged.damaged:
            progress.say(logged.warning(self.metrics))
        records = [r for r in logged.records if r["iteration"] <= state.iteration]
        if ranks.rank() == 0:
            artifacts.write_text(self.metrics, "".join(map(_line, records)))
        self._earlier, self._begun = _seconds(records), time.monotonic()

    def reached(self) -> int:
        """The iteration from which the run will continue, as far as headers tell."""
        for path in (self.newest, self.previous):
            if path.exists():
                try:
                    return checkpoints.reached(path)
                except InputError:
                    continue
        return 0

    def checkpoint(self, state: State) -> None:
        """Write a checkpoint and keep the one before it; the metrics are on the disk before it."""
        if ranks.rank() > 0:
            return
        self._sync_metrics()
        if self.newest.exists():
            os.replace(self.newest, self.previous)
        checkpoints.save(self.newest, state)

    def log(self, record: dict[str, Any]) -> dict[str, Any]:
        """Append a record, with the seconds spent so far, and return it."""
        seconds = self._earlier + time.monotonic() - self._begun
        record = {**record, "seconds": round(seconds, 3)}
        if ranks.rank() == 0:
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(_line(record))
        return record

    def seconds(self) -> float:
        """How long the run has taken, over all its sittings."""
        return _seconds(read_metrics(self.metrics).records)

    def _sync_metrics(self) -> None:
        """Wait for the disk: a power cut must not take records that no iteration will repeat."""
        with self.metrics.open("a", encoding="utf-8") as file:
            os.fsync(file.fileno())


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record) + "\n"


def _seconds(records: list[dict[str, Any]]) -> float:
    return float(records[-1]["seconds"]) if records else 0.0
