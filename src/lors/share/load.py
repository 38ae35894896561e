"""Opening whatever lors has written."""

from __future__ import annotations

from pathlib import Path

from lors.files.artifacts import open_artifact
from lors.runs.opened import Run
from lors.sets.distilled import KIND as SET
from lors.sets.distilled import DistilledSet
from lors.share.retriever import KIND as RETRIEVER
from lors.share.retriever import Retriever
from lors.system.errors import InputError

__all__ = ["load"]


def load(path: str | Path) -> DistilledSet | Retriever | Run:
    """A set, a retriever, or the directory of a run, whichever is there. No code in it is run.

    >>> small.save("small.safetensors")
    >>> load("small.safetensors")
    DistilledSet(7 pairs of features and texts, 12 and 10, by hindsight, lowrank S, storage of 8.0)

    Raises:
        InputError: it is something else, or damaged.
    """
    path = Path(path)
    if path.is_dir():
        return Run(path)
    with open_artifact(path) as (header, _):
        kind = header["kind"]
    if kind == SET:
        return DistilledSet.load(path)
    if kind == RETRIEVER:
        return Retriever.load(path)
    raise InputError(f"{str(path)!r} is a {kind}, a part of something larger: load its run or set")
