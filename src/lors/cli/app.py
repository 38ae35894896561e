"""The typer application that every module of commands adds to, and what they share."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from lors.system.stopping import INTERRUPTED

__all__ = ["Changes", "Overrides", "Source", "app", "console", "end_interrupted"]


class _Commands(TyperGroup):
    """All commands; typer itself would end an interrupted one without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            end_interrupted(stop)


app = typer.Typer(
    cls=_Commands,
    help="Distil a large set of captioned images into a tiny one that trains a CLIP-style model.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: boxes import a Markdown parser
    pretty_exceptions_enable=False,
)
console = Console()


def end_interrupted(stop: KeyboardInterrupt) -> NoReturn:
    """End the program after a signal, with a sentence and the usual exit code."""
    if not console.quiet:
        Console(stderr=True).print(INTERRUPTED)
    sys.exit(getattr(stop, "code", 130))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lors {version('lors')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What stands before a command."""


Source = Annotated[
    str,
    typer.Argument(metavar="CONFIG", help="Name of a preset (see 'lors presets') or YAML file."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings that replace those of CONFIG, e.g. distill.iterations=500.",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings that replace those saved with it, e.g. data.root=/elsewhere.",
        show_default=False,
    ),
]
