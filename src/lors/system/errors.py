"""Errors that a user can act on."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = [
    "DivergedError",
    "InputError",
    "LorsError",
    "OutOfMemoryError",
    "choose",
    "explained",
    "out_of_memory",
    "printable",
    "shortened",
    "suggestion",
]

T = TypeVar("T")

NO_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "out of memory",
    "Cannot allocate memory",
    "can't start new thread",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""What errors say that are no MemoryError."""
NO_ROOM_FOR_LIBRARY = "failed to map segment from shared object"
"""What an import says under a limit on memory; where programs may not be run, it says more."""
SENTENCE = 1200
"""The most characters of a message: it quotes files and settings, which may hold anything."""


class LorsError(Exception):
    """Something the user can put right; the message is one sentence that says how.

    >>> import lors
    >>> try:
    ...     lors.load("small.safetensors")
    ... except lors.LorsError as error:
    ...     print(error)
    there is no file 'small.safetensors'
    """

    def __init__(self, message: str) -> None:
        super().__init__(shortened(printable(message), SENTENCE))


class InputError(LorsError):
    """Bad input: a name, a number, a file. The command line exits with code 2.

    >>> import lors
    >>> try:
    ...     lors.load_config("demo", ["similarity.rnk=5"])
    ... except lors.InputError as error:
    ...     print(error)
    unknown setting 'similarity.rnk'; did you mean 'rank'?
    """


class DivergedError(LorsError):
    """A run's numbers turned non-finite, or all its gradients zero. The command line exits with 1.

    Args:
        message: what happened and what to lower.
        part: what was to blame: a part of the set, or ``rates`` for the inner training run.
    """

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part


class OutOfMemoryError(LorsError, MemoryError):
    """Memory ran out, and nothing that changes no result takes less. The command line exits with 1.

    Its message names the settings to lower.
    """


def printable(text: str) -> str:
    r"""A text on one line, without what would move a cursor or cannot be written to a file.

    >>> print(printable("two\n\tlines, \x1b[2J and \ud800"))
    two lines, \x1b[2J and \ud800
    """
    if text.isprintable():
        return text
    line = re.sub(r"[\t\n\r\v\f]+ *", " ", text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def shortened(text: str, length: int = 200) -> str:
    """A text of at most so many characters, cut in its middle: messages end with what to do.

    >>> shortened("a name of many characters", 15)
    'a name … acters'
    """
    if len(text) <= length:
        return text
    kept = length - len(" … ")
    return f"{text[: kept - kept // 2]} … {text[len(text) - kept // 2 :]}"


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left, as Python, numpy, torch or CUDA say it.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("MPS backend out of memory (…)"))
    (True, True)
    """
    if isinstance(error, LorsError):  # it is a sentence already
        return False
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = str(error)
    if isinstance(error, ImportError):
        return text.endswith(NO_ROOM_FOR_LIBRARY) or "Cannot allocate memory" in text
    return isinstance(error, (RuntimeError, OSError)) and any(sign in text for sign in NO_MEMORY)


def explained(error: BaseException) -> str | None:
    """A sentence for what the machine refuses: memory, a full disk, a path. None: it is a bug."""
    if out_of_memory(error) and isinstance(error, ImportError):
        return (
            "out of memory while loading libraries: raise the limit of this process (see "
            "'ulimit -v', or the memory of the batch job), or close other programs"
        )
    if out_of_memory(error):
        return (
            "out of memory: lower matching.batch_size, evaluate.batch_size, distill.budget or "
            "encoder.image_size, take a smaller trunk, or close other programs; 'lors plan' says "
            "what a configuration takes"
        )
    if not isinstance(error, OSError):
        return None
    where = f" ({shortened(str(error.filename))})" if error.filename else ""
    if error.errno == errno.ENAMETOOLONG:
        return f"{error.strerror}{where}: give a shorter path"
    return (
        f"{shortened(error.strerror or str(error), 400)}{where}. What was saved before is whole: "
        "put this right, and the same command continues"
    )


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
