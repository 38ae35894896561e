"""Commands that inform without running anything: plan, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lors.cli.app import Overrides, Source, app, console
from lors.cli.display import LOADING, Display


@app.command()
def plan(config: Source, overrides: Overrides = None) -> None:
    """Print what a run takes in storage, memory and time.

    Two iterations on made-up data are measured; neither data nor pretrained weights are needed.
    """
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.runs.plan import plan as measure

        display.doing("building networks")
        found = measure(settings, display)
    table = Table("", escape(config))
    for name, value in found.lines():
        table.add_row(name, escape(value), style="bold" if name == "verdict" else "")
    console.print(table)


@app.command()
def info(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Any file or run directory that lors wrote.")
    ],
) -> None:
    """Describe a set, an expert, a checkpoint or a run."""
    from lors.runs.info import describe

    console.print(str(path), style="bold", markup=False, highlight=False, soft_wrap=True)
    facts = Table.grid("", "", padding=(0, 2))
    for name, value in describe(path).items():
        facts.add_row(f"  {escape(name)}", escape(str(value)))
    console.print(facts, highlight=False)
