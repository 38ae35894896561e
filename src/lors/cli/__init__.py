"""The ``lors`` command: each module beside this one adds the commands of one kind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from lors.cli.app import app, console
from lors.errors import InputError, LorsError

# isort: off
# The order is that of the commands in the help.
from lors.cli import make, compare, report, look, share, inform, bench  # noqa: F401
# isort: on

__all__ = ["app", "main"]

DIVIDED = ("experts", "distill", "compare", "evaluate", "select", "encode")
"""The commands that several processes can do together, started by torchrun."""


def main() -> None:
    """Run the command line; a user's mistake is a sentence and exit code 2, not a traceback."""
    try:
        with _joined():
            app()
    except LorsError as error:
        _fail(str(error))
        sys.exit(2 if isinstance(error, InputError) else 1)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(
            f"{error.strerror or error}{where}. What was saved before is whole: put this right, "
            "and the same command continues"
        )
        sys.exit(1)


@contextmanager
def _joined() -> Iterator[None]:
    """Join the other processes, if torchrun started this one; all but rank 0 keep silent."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield
        return
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if command not in DIVIDED:
        raise InputError(f"lors {command} is for one process: run it without torchrun")
    from lors import ranks  # here, because torch takes seconds to import

    with ranks.joined():
        console.quiet = ranks.rank() > 0
        yield


def _fail(sentence: str) -> None:
    who = f"rank {rank}: " if (rank := os.environ.get("RANK", "0")) != "0" else ""
    text = f"[bold red]{who}error:[/] {escape(sentence)}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
