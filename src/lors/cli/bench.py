"""The command that measures speed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from lors.cli.app import app, console

if TYPE_CHECKING:
    from lors.bench import Ratio


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which benchmarks. Default: all.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often everything is timed.", min=2)] = 5,
    out: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """Time ours against plain references, by turns in one run.

    "passes" is the cost in plain forward and backward passes of the same network on the same batch.
    """
    from lors.bench import BENCHMARKS
    from lors.bench import bench as run
    from lors.system.errors import choose

    found = {}
    for name in names or BENCHMARKS:
        what = choose(BENCHMARKS, name, "benchmark")
        with console.status(f"{name}: {what}"):
            found[name] = run(name, rounds)
        console.print(_table(f"{name}: {what}", found[name]))
        if out is not None:
            lines = {name: [asdict(line) for line in lines] for name, lines in found.items()}
            out.write_text(json.dumps({"rounds": rounds, **lines}, indent=2) + "\n", "utf-8")


def _table(title: str, lines: list[Ratio]) -> Table:
    right = [Column(name, justify="right") for name in ("ours", "reference", "times faster")]
    passes = any(line.passes is not None for line in lines)
    columns = ("passes", "reference's passes") if passes else ()
    right += [Column(name, justify="right") for name in columns]
    table = Table(Column("case"), *right, "", title=title, title_justify="left")
    for line in lines:
        costs = (line.passes, line.reference_passes) if passes else ()
        table.add_row(
            line.case,
            f"{line.ours:.3g} s",
            f"{line.reference:.3g} s",
            f"{line.faster:.2f}",
            *("" if cost is None else f"{cost:.2f}" for cost in costs),
            ", ".join(f"{name} {value:.3g}" for name, value in line.more.items()),
        )
    return table
