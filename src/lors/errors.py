"""Errors that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["DivergedError", "InputError", "LorsError", "choose", "suggestion"]

T = TypeVar("T")


class LorsError(Exception):
    """Something the user can put right; the message is one sentence that says how."""


class InputError(LorsError):
    """Bad input: a name, a number, a file. The command line exits with code 2."""


class DivergedError(LorsError):
    """A run's numbers turned non-finite, or all its gradients zero. The command line exits with 1.

    Args:
        message: what happened and what to lower.
        part: what was to blame: a part of the set, or ``rates`` for the inner training run.
    """

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known name, or the list of them.

    >>> suggestion("lowrnk", ["identity", "lowrank"])
    "; did you mean 'lowrank'?"
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return "; known: " + ", ".join(known[:20]) + (", …" if len(known) > 20 else "")


def choose(registry: Mapping[str, T], name: str, what: str) -> T:
    """Look a name up in a registry, or raise with the nearest name.

    Raises:
        InputError: the registry has no such name.
    """
    if name not in registry:
        raise InputError(f"unknown {what} {name!r}{suggestion(name, registry)}")
    return registry[name]
