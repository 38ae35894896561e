"""The command that writes a report."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lors.cli.app import Changes, app, console
from lors.cli.display import LOADING, PREPARING, Display


class Projection(str, Enum):
    """What a map is made by."""

    pca = "pca"
    umap = "umap"


@app.command()
def report(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run directory, a set, or a comparison's folder."),
    ],
    overrides: Changes = None,
    out: Annotated[
        Path | None, typer.Option(help="HTML file. Default: report.html in the folder.")
    ] = None,
    projection: Annotated[
        Projection,
        typer.Option("--map", help="How to draw the map; umap needs lors[map]."),
    ] = Projection.pca,
    thorough: Annotated[
        bool, typer.Option(help="Train a network for the page even if that takes minutes.")
    ] = False,
) -> None:
    """Write a page that shows a run, a set or a comparison. One HTML file, needing nothing else.

    The real pairs are read from where the run found them, unless overridden: data.root=/elsewhere.
    """
    with Display(LOADING) as display:
        from lors.show.report import write_report

        display.doing(PREPARING)
        page = write_report(path, overrides or (), out, display, projection.value, thorough)
    console.print(f"The report is {escape(str(page))}", soft_wrap=True)
