"""The command that explains settings."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from lors.cli.app import app, console

WIDEST = 100
"""Longer lines are hard to read."""


@app.command()
def settings(
    section: Annotated[
        str | None,
        typer.Argument(
            metavar="[SECTION]",
            help="A section or a setting, e.g. matching.hindsight or distill.budget. Default: all.",
        ),
    ] = None,
) -> None:
    """Explain every setting: its type, default and meaning."""
    from lors.config.describing import described

    width = min(console.width, WIDEST)
    for each in described(section):
        title = f"{each.name}: {each.about}" if each.name else each.about
        console.print(textwrap.fill(title, width), style="bold", markup=False, highlight=False)
        for setting in each.settings:
            head = f"  {setting.name} = {setting.default}  ({setting.type})"
            meaning = textwrap.fill(setting.meaning, width - 6)
            text = textwrap.fill(head, width, subsequent_indent="    ", break_long_words=False)
            typer.echo(f"{text}\n{textwrap.indent(meaning, '      ')}")
        typer.echo()
