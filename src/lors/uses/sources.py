"""Sets as the uses take them: in memory, or from their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lors.config import Config, load_config
from lors.sets.distilled import DistilledSet
from lors.system.errors import InputError

__all__ = ["configured_like", "opened"]


def opened(source: DistilledSet | str | Path) -> DistilledSet:
    """A set, or what its file or run directory holds.

    >>> len(opened(small)) == len(small)
    True
    """
    if isinstance(source, DistilledSet):
        return source
    path = Path(source)
    if not path.exists():
        raise InputError(f"there is no set {str(source)!r}")
    return DistilledSet.load(path / "distilled.safetensors" if path.is_dir() else path)


def configured_like(made: DistilledSet, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a set with changes."""
    return load_config(made.config.model_dump(mode="json"), overrides)
