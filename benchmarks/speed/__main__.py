"""Time lors against plain references, by turns in one process.

"reference" is the published or the plain way, "floor" one plain forward and backward pass of the
same network on the same batch, and "passes" a cost in such passes, per batch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from benchmarks.speed import BENCHMARKS
from benchmarks.speed.ratio import Ratio
from lors.system.errors import InputError, choose


def main(arguments: Sequence[str] | None = None) -> None:
    names, rounds, out = _parsed(arguments)
    console, found = Console(), {}
    for name in names:
        title = f"{name}: {BENCHMARKS[name]}"
        with console.status(title):
            found[name] = measured(name, rounds)
        console.print(table(title, found[name]))
        if out is not None:
            lines = {name: [asdict(line) for line in lines] for name, lines in found.items()}
            out.write_text(json.dumps({"rounds": rounds, **lines}, indent=2) + "\n", "utf-8")


def measured(name: str, rounds: int) -> list[Ratio]:
    """Run one benchmark."""
    module = import_module(f"benchmarks.speed.{name.replace('-', '_')}")
    ratios: list[Ratio] = module.ratios(rounds)
    return ratios


def table(title: str, lines: Sequence[Ratio]) -> Table:
    """One row per case."""
    right = [Column(name, justify="right") for name in ("ours", "reference", "times faster")]
    passes = any(line.passes is not None for line in lines)
    columns = ("floor", "passes", "reference's passes") if passes else ()
    right += [Column(name, justify="right") for name in columns]
    rows = Table(Column("case"), *right, "", title=title, title_justify="left")
    for line in lines:
        floor = "" if line.floor is None else f"{line.floor:.3g} s"
        costs = (line.passes, line.reference_passes) if passes else ()
        rows.add_row(
            line.case,
            f"{line.ours:.3g} s",
            f"{line.reference:.3g} s",
            f"{line.faster:.2f}",
            *([floor] if passes else []),
            *("" if cost is None else f"{cost:.2f}" for cost in costs),
            ", ".join(f"{name} {value:.3g}" for name, value in line.more.items()),
        )
    return rows


def _parsed(arguments: Sequence[str] | None) -> tuple[list[str], int, Path | None]:
    listed = "\n".join(f"  {name:<15}{what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        epilog=f"benchmarks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benchmarks; default: all")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed; default: 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    asked = parser.parse_args(arguments)
    if asked.rounds < 2:
        parser.error("--rounds must be at least 2")
    try:
        for name in asked.names:
            choose(BENCHMARKS, name, "benchmark")
    except InputError as error:
        parser.error(str(error))
    return asked.names or list(BENCHMARKS), asked.rounds, asked.json


if __name__ == "__main__":
    main()
