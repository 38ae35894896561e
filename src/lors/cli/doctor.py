"""The command that checks the machine and the caches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from lors.cli.app import app, console
from lors.cli.display import LOADING, Display


@app.command()
def doctor(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Run directories to check as well."),
    ] = None,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean",
            help="Remove what killed processes left, and damaged caches, which are made again.",
        ),
    ] = False,
) -> None:
    """Check the machine, the caches and runs. Shows what takes space and what is damaged.

    Exits with 1 if something is not as it should be.
    """
    with Display(LOADING) as display:
        from lors.runs.doctor import examine, remove

        display.doing("looking at the caches")
        findings = examine(runs or (), display)
    table = Table("", Column("what", no_wrap=True), Column("found", overflow="fold"))
    for finding in findings:
        mark = "[green]ok[/]" if finding.well else "[bold red]![/]"
        table.add_row(mark, escape(finding.what), escape(finding.detail))
    console.print(table)
    bad = [finding for finding in findings if not finding.well]
    if clean:
        gone = remove(bad)
        console.print(f"Removed: {len(gone)}.")
        bad = [f for f in bad if not f.removable or any(path.exists() for path in f.removable)]
    elif any(finding.removable for finding in bad):
        console.print("To remove leftovers and damaged caches: [bold]lors doctor --clean[/]")
    if bad:
        raise typer.Exit(1)
