"""What an evaluation is given: a set in any form, and real pairs that it can be measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from lors.data.in_memory import Given, length
from lors.sets.distilled import DistilledSet
from lors.system.errors import InputError

__all__ = ["HasSet", "check_split", "set_of"]


class HasSet(Protocol):
    """A run, which has a set."""

    distilled: DistilledSet


def set_of(given: Any) -> DistilledSet:
    """The set that is meant: itself, that of a run, or that of a file or run directory."""
    found = getattr(given, "distilled", given)
    if isinstance(found, DistilledSet):
        return found
    if not isinstance(given, (str, Path)):
        raise InputError(
            f"a {type(given).__name__} is not a distilled set: give one, its file, or a run"
        )
    path = Path(given)
    return DistilledSet.load(path / "distilled.safetensors" if path.is_dir() else path)


def check_split(made: DistilledSet, name: str, split: Given) -> None:
    """Refuse real pairs that the set cannot be measured on."""
    if length(split) < 2:
        raise InputError(f"{name} has {length(split)} pair: recall needs 2 or more to search among")
    if isinstance(split, list):
        if made.given:
            raise InputError(f"{name} holds images, and the set embeddings: give embeddings")
        return
    if not made.given:
        raise InputError(
            f"{name} holds embeddings, and the set was made of images and captions: give these"
        )
    ours = made.pairs.images.shape[1], made.pairs.texts.shape[1]
    theirs = split.images.shape[1], split.texts.shape[1]
    if ours != theirs:
        raise InputError(
            f"the images and texts of {name} have {theirs[0]} and {theirs[1]} numbers each, and "
            f"those of the set {ours[0]} and {ours[1]}: give embeddings of the same encoders"
        )
