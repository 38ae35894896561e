"""How progress is shown: a bar in a notebook, rows on a terminal, lines in a log."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console

from lors.system.errors import InputError, shortened
from lors.system.progress import Progress, Silent
from lors.system.showing.bars import Bars
from lors.system.showing.lines import Lines
from lors.system.showing.notebook import Notebook
from lors.system.showing.shell import below_kernel, kernel
from lors.system.showing.works import Works, current

__all__ = ["ProgressLike", "as_progress", "showing_progress", "shown_progress"]

ProgressLike: TypeAlias = Progress | bool | None
"""What functions take as ``progress``; see ``as_progress``."""

METHODS = ("track", "note", "say")


def shown_progress(
    quiet: bool = False, console: Console | None = None, start: float | None = None
) -> Works:
    """Progress as it is best shown here.

    In a notebook it is one output that is updated in place and ends as a short text; on a terminal,
    rows with bars; elsewhere, as in the log of a batch job, a line now and then.

    Args:
        quiet: show nothing.
        console: where to, if this is no notebook; default: stderr.
        start: when the program started, by ``time.monotonic``, for the times in a log; default:
            now.

    >>> with shown_progress() as progress:
    ...     sum(progress.track(range(100), "add numbers", total=100))
    4950
    """
    if quiet:
        return Works()
    if (shell := kernel()) is not None:
        return Notebook(shell)
    console = console or Console(stderr=True)
    return Bars(console) if _is_live(console) else Lines(console, start)


def as_progress(value: ProgressLike = None) -> Progress:
    """The progress that the ``progress`` argument of a function asks for.

    Args:
        value: ``True`` shows progress: in a notebook, on a terminal, or elsewhere as a line now and
            then on stderr. A call within another one that shows its progress joins that. ``None``
            does the same, but not in worker processes, nor in ranks after the first. ``False``
            shows nothing. An object with ``track``, ``note`` and ``say`` is returned as it is.

    Raises:
        InputError: the value is none of these.

    >>> list(as_progress(False).track("ab", "letters", total=2))
    ['a', 'b']
    """
    if value is None:
        value = _is_first_process()
    if isinstance(value, bool):
        return (current() or shown_progress()) if value else Silent()
    if missing := [name for name in METHODS if not callable(getattr(value, name, None))]:
        raise InputError(
            f"progress must be True, False, None, or an object with {', '.join(METHODS)}; "
            f"{shortened(repr(value))} has no {missing[0]}"
        )
    return value


@contextmanager
def showing_progress(value: ProgressLike = None) -> Iterator[Progress]:
    """``as_progress`` for the time of a call: at its end, also by an error, no more is shown.

    What was under way before, or is given as an object, is not ended.

    >>> with showing_progress(False) as progress:
    ...     list(progress.track("ab", "letters", total=2))
    ['a', 'b']
    """
    progress = as_progress(value)
    if isinstance(progress, Works) and progress is not value and not progress.running:
        with progress:
            yield progress
    else:
        yield progress


def _is_first_process() -> bool:
    """Whether neither multiprocessing nor torchrun started this process beside another one."""
    is_worker = multiprocessing.parent_process() is not None
    return not is_worker and os.environ.get("RANK", "0") == "0"


def _is_live(console: Console) -> bool:
    """Whether rows can be drawn again and again, which FORCE_COLOR says of every log."""
    is_terminal = console.is_terminal and not console.is_dumb_terminal and console.file.isatty()
    return is_terminal and not below_kernel()
