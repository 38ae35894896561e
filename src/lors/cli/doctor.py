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
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead, check for a minute that results on this device are right, time it, and "
            "write a report for an issue; it names no paths, people or hosts.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Of --report: auto, cpu, cuda, cuda:1 or mps.")
    ] = "auto",
) -> None:
    """Check the machine, the caches and runs. Shows what takes space and what is damaged.

    Exits with 1 if something is not as it should be.
    """
    if report is not None:
        _report(report, device)
        return
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


def _report(path: Path, device: str) -> None:
    with Display(LOADING) as display:
        from lors.files.artifacts import write_text
        from lors.runs.device_report import device_report

        text, well = device_report(device, display)
        write_text(path, text)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"Written to {escape(str(path))}: paste it into an issue, whatever it says.")
    if not well:
        raise typer.Exit(1)
