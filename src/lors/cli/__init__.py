"""The ``lors`` command: each module beside this one adds the commands of one kind."""

from __future__ import annotations

import signal
import sys

from rich.console import Console
from rich.markup import escape

from lors.cli.app import app
from lors.errors import InputError, LorsError
from lors.stopping import stop_now

# isort: off
# The order is that of the commands in the help.
from lors.cli import make, compare, report, look, share, inform, bench  # noqa: F401
# isort: on

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is a sentence and exit code 2, not a traceback."""
    signal.signal(signal.SIGTERM, stop_now)
    try:
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


def _fail(sentence: str) -> None:
    text = f"[bold red]error:[/] {escape(sentence)}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
