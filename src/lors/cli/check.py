"""The command that checks a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from lors.cli.app import Overrides, Source, app, console
from lors.cli.display import LOADING, Display


@app.command()
def check(
    config: Source,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Write all problems here: a .csv file.", show_default=False)
    ] = None,
) -> None:
    """Check a dataset: every problem in one pass, by row.

    Reads all rows and decodes all images. Exits with 2 if something cannot be used; a run with
    data.skip_bad=true goes on without it.
    """
    from lors.config import load_config

    data = load_config(config, overrides or ()).data
    with Display(LOADING) as display:
        from lors.data.checking import check_pairs
        from lors.data.problems import write_problems

        display.doing("checking the data")
        checked = check_pairs(data, display)
    if checked.facts:
        table = Table(Column("", no_wrap=True), escape(data.title()))
        for name, value in checked.facts.items():
            table.add_row(name, value)
        console.print(table)
    if out is not None:
        write_problems(out, checked.problems)
        console.print(f"All problems are in {escape(str(out))}", soft_wrap=True)
    error = checked.error()
    if error is not None:
        raise error
    console.print("No problems.")
