"""The files of a run directory, and whether it holds the run that is asked for."""

from __future__ import annotations

import json
from pathlib import Path

from lors.config import Config, difference, load_config
from lors.evaluation.results import Results
from lors.files import artifacts
from lors.files.artifacts import home
from lors.system.errors import InputError

__all__ = [
    "CALLS",
    "CARD",
    "CONFIG",
    "DATA",
    "LOG",
    "RESULTS",
    "SELECTION",
    "SET",
    "check_data",
    "check_folder",
    "read_results",
    "saved_results",
    "skipped_file",
]

CONFIG, SET = "config.yaml", "distilled.safetensors"
LOG, RESULTS, CARD = "metrics.jsonl", "results.json", "README.md"
DATA, SELECTION, SKIPPED = "data.json", "selection.csv", "skipped.csv"

CALLS = "calls"
"""Below ``LORS_HOME``: the run directories of calls that keep none."""


def skipped_file(out: Path) -> Path | None:
    """Where a run lists the rows that it left out; None: its directory goes when the call ends."""
    return None if home() / CALLS in out.parents else out / SKIPPED


def check_folder(out: Path, config: Config) -> None:
    """Refuse a run directory that holds something else; a longer version of its run may go on.

    Not so one whose learning rates follow a schedule: a longer one is another from the start.

    Raises:
        InputError: it holds another run, or something that is not a run.
    """
    path = out / CONFIG
    if path.is_file():
        theirs = load_config(path)
        words = {"description", "expected", "trackers", "recompute"}  # none changes a bit
        ours, found = (c.model_dump(mode="json", exclude=words) for c in (config, theirs))
        longer = config.distill.iterations >= theirs.distill.iterations
        if longer and config.distill.schedule == "constant":
            found["distill"]["iterations"] = config.distill.iterations
        differs = difference(ours, found)
        if differs:
            raise InputError(
                f"{str(out)!r} holds a run with another configuration ({'; '.join(differs)}): "
                "choose another --out, or delete it"
            )
    elif out.exists() and (not out.is_dir() or any(p.name[0] != "." for p in out.iterdir())):
        raise InputError(
            f"{str(out)!r} is not an empty folder and holds no run: choose another --out"
        )


def check_data(out: Path, fingerprint: str) -> None:
    """Refuse to go on with a run that began with other data, as ``DATA`` says.

    Args:
        out: the run directory.
        fingerprint: of what the data holds.

    Raises:
        InputError: the run began with other data.
    """
    try:
        theirs = json.loads((out / DATA).read_text("utf-8"))
        differs = theirs["fingerprint"] != fingerprint
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        differs = False  # a run of before, or damaged: nothing is known of its data
    if differs:
        raise InputError(
            f"the data has changed since the run in {str(out)!r} began: choose another --out, or "
            "put the data back"
        )


def read_results(out: Path, config: Config) -> Results:
    """The results of this run so far; those of a shorter run do not count."""
    results = saved_results(out)
    if results.iterations == config.distill.iterations:
        return results
    return Results(
        iterations=config.distill.iterations,
        seconds_to_distil=None,
        peak_memory=None,
        versions=artifacts.versions(),
        rows={},
    )


def saved_results(out: Path) -> Results:
    """The content of ``results.json``; without the file, results without rows.

    Raises:
        InputError: it is damaged.
    """
    path = out / RESULTS
    if not path.is_file():
        return Results()
    try:
        return Results.model_validate(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{str(path)!r} is damaged: delete it and run again") from None
