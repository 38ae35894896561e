"""The ``lors`` command: each module beside this one adds the commands of one kind."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.markup import escape

from lors.cli.app import app, console, end_interrupted, without_plugins
from lors.cli.display import Display
from lors.system.errors import InputError, LorsError, explained, printable

# isort: off
# The order is that of the commands in the help.
from lors.cli import make, compare, report, look, search  # noqa: F401
from lors.cli import share, uses, inform, presets, settings, check, doctor  # noqa: F401
# isort: on

__all__ = ["app", "main"]

DIVIDED = ("experts", "distill", "compare", "evaluate", "select", "encode")
"""The commands that several processes can do together, started by torchrun."""


def main() -> None:
    """Run the command line; a user's mistake is a sentence and exit code 2, not a traceback."""
    _print_anything()
    try:
        with _joined():
            app()
    except KeyboardInterrupt as stop:
        end_interrupted(stop)
    except LorsError as error:
        _fail(str(error))
        sys.exit(2 if isinstance(error, InputError) else 1)
    except (OSError, MemoryError, RuntimeError, ImportError) as error:
        if (sentence := explained(error)) is None:
            raise
        _fail(sentence)
        sys.exit(1)


def _print_anything() -> None:
    """Let output replace characters that its encoding lacks, as in a log of plain ASCII.

    Otherwise a ± in the table of results would end a run with a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _joined() -> Iterator[None]:
    """Join the other processes, if torchrun started this one; all but rank 0 keep silent."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield
        return
    _, words = without_plugins(sys.argv[1:])
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in DIVIDED:
        raise InputError(f"lors {command} is for one process: run it without torchrun")
    console.quiet = os.environ["RANK"] != "0"
    with Display("loading PyTorch") as display, ExitStack() as stack:
        from lors.system import ranks  # here, because torch takes seconds to import

        display.doing("waiting for the other processes")
        stack.enter_context(ranks.joined())
        joined = stack.pop_all()
    with joined:
        yield


def _fail(sentence: str) -> None:
    who = f"rank {rank}: " if (rank := os.environ.get("RANK", "0")) != "0" else ""
    lines = "\n".join(printable(line) for line in sentence.split("\n"))
    text = f"[bold red]{who}error:[/] {escape(lines)}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
