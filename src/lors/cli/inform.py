"""Commands that inform without running anything: plan, info, presets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from lors.cli.app import Overrides, Source, app, console
from lors.cli.display import LOADING, Display
from lors.system.errors import choose


@app.command()
def plan(config: Source, overrides: Overrides = None) -> None:
    """Print storage, memory and time of a run before running it.

    From a short measurement on this device; neither data nor pretrained weights are needed.
    """
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.runs.plan import plan as measure

        display.doing("measuring a few steps")
        facts = measure(settings)
    table = Table("", escape(config))
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="Any file or run directory that lors wrote.")],
) -> None:
    """Describe an artefact: a set, an expert, a checkpoint, a run."""
    from lors.runs.info import describe

    table = Table("", escape(str(path)))
    for name, value in describe(path).items():
        table.add_row(escape(name), escape(str(value)))
    console.print(table)


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset as YAML.")] = None,
) -> None:
    """List the configurations that come with lors, or print one."""
    from lors.config import Expected, load_config
    from lors.config import presets as known

    if name is not None:
        typer.echo(choose(known(), name, "preset"), nl=False)
        return
    table = Table(Column("preset", no_wrap=True), "recall", "full data", "needs", "what it does")
    for preset in known():
        config = load_config(preset)
        expected = config.expected or Expected()
        if not preset.endswith("-base"):
            recalls = ("" if r is None else f"{r}" for r in (expected.recall, expected.full_data))
            needs = ", ".join(filter(None, (expected.time, expected.memory)))
            table.add_row(preset, *recalls, needs, config.description)
    console.print(table)
    console.print(
        "Recalls are means of IR and TR@1/5/10 as published, or as measured for our own presets. "
        "For time and memory on this device: [bold]lors plan PRESET[/]"
    )
