"""The typer application that every module of commands adds to, and what they share."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["Changes", "Overrides", "Source", "app", "console"]

app = typer.Typer(
    help="Distil a large set of captioned images into a tiny one that trains a CLIP-style model.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: boxes import a Markdown parser
    pretty_exceptions_enable=False,
)
console = Console()


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
