"""What a target of fuzzing is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutate import Mutation

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A reader.

    Args:
        file: the name under which a damaged file is put into the folder.
        originals: makes whole files, and whatever else the folder needs.
        aware: mutations that know the format.
        read: reads the folder; an error of ours or a correct load, nothing else.
        share: how many inputs it gets, where a fast reader gets 1.
        needs: the package that it needs, if that is an extra.
    """

    file: str
    originals: Callable[[Path], Sequence[bytes]]
    aware: Sequence[Mutation]
    read: Callable[[Path], None]
    share: float = 1.0
    needs: str | None = None
