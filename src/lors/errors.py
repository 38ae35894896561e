"""Errors that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["DivergedError", "InputError", "LorsError", "choose", "shortened", "suggestion"]

T = TypeVar("T")

SENTENCE = 1200
"""The most characters of a message: it quotes files and settings, which may hold anything."""


class LorsError(Exception):
    """Something the user can put right; the message is one sentence that says how."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, SENTENCE))


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


def shortened(text: str, length: int = 200) -> str:
    """A text of at most so many characters, cut in its middle: messages end with what to do.

    >>> shortened("a name of 5,000 characters", 16)
    'a name … racters'
    """
    if len(text) <= length:
        return text
    kept = length - len(" … ")
    return f"{text[: kept - kept // 2]} … {text[len(text) - kept // 2 :]}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known name, or the list of them.

    >>> suggestion("lowrnk", ["identity", "lowrank"])
    "; did you mean 'lowrank'?"
    """
    known = sorted(known)
    near = difflib.get_close_matches(name[:100], known, n=1)  # quadratic in the name's length
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
