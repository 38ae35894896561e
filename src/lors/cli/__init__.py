"""The ``lors`` command: each module beside this one adds the commands of one kind."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from lors.cli.app import app
from lors.errors import InputError, LorsError

# isort: off
# The order is that of the commands in the help.
from lors.cli import make, compare, report, look, share, inform  # noqa: F401
# isort: on

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is a sentence and exit code 2, not a traceback."""
    try:
        app()
    except LorsError as error:
        text = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted. The same command continues where it stopped.")
        sys.exit(130)
