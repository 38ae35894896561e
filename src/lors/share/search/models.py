"""The two models of a run: trained on its set, and trained on all real pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lors.encoders.weights import content_digest
from lors.files.cache import fingerprint
from lors.runs.folders import SET
from lors.runs.opened import Run
from lors.share.retriever import Retriever
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["FULL_DATA_MODEL", "SET_MODEL", "full_data_retriever", "set_retriever"]

SET_MODEL, FULL_DATA_MODEL = "retriever.safetensors", "retriever-full.safetensors"


def set_retriever(run: Run, progress: Progress) -> Retriever:
    """The model trained on the set of a run; trained on first use and kept beside the set.

    Raises:
        InputError: the set was made of given embeddings, or its image trunk is not here.
    """
    return _kept(
        run, SET_MODEL, lambda: Retriever.train(run.distilled), "train on the set", progress
    )


def full_data_retriever(run: Run, progress: Progress) -> Retriever:
    """The model trained on all real pairs of a run; trained on first use and kept beside the set.

    It is the run's first expert, so usually nothing has to be trained.

    Raises:
        InputError: the data is not there, or consists of given embeddings.
    """
    return _kept(
        run,
        FULL_DATA_MODEL,
        lambda: Retriever.of_full_data(run.setting),
        "train on all real pairs",
        progress,
    )


def _kept(
    run: Run, name: str, make: Callable[[], Retriever], what: str, progress: Progress
) -> Retriever:
    made_from = fingerprint(content_digest(run.set_path).hex(), run.config.yaml())
    stem = "" if run.set_path.name == SET else f"{run.set_path.stem}-"
    path = run.folder / f"{stem}{name}"
    if (kept := _read(path, made_from)) is not None:
        return kept
    for _ in progress.track(range(1), what, 1):
        retriever = replace(make(), made_from=made_from)
    try:
        retriever.save(path)
        progress.say(f"The model is kept in {str(path)!r}.")
    except OSError as error:
        progress.say(f"The model is not kept, as {str(path)!r} cannot be written: {error.strerror}")
    return retriever


def _read(path: Path, made_from: str) -> Retriever | None:
    """A model that was kept; None if there is none, or one of another set, or a damaged one."""
    if not path.is_file():
        return None
    try:
        kept = Retriever.load(path)
    except InputError:
        return None
    return kept if kept.made_from == made_from else None
