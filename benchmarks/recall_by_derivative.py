"""Recall by way to second derivatives: whether a faster way changes what a set is worth.

    python benchmarks/recall_by_derivative.py                      # all runs that are missing
    python benchmarks/recall_by_derivative.py --presets demo --seeds 2 --ways auto,double
    python benchmarks/recall_by_derivative.py --runs 10 -- data.root=photos   # ten runs, then stop

Every run is a process of its own; finished ones are kept in a CSV file, so that the command may be
stopped at any time. Experts do not depend on the way or the seed, and are shared. It ends with a
table of mean and deviation over seeds.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lors.evaluation.statistic import Statistic
from lors.runs.opened import Run

WAYS = ("double", "forward", "central", "one-sided", "kept", "auto")
PRESETS = ("demo", "scenes-parallax-100", "flickr8k-heads-100")


class Line(NamedTuple):
    """One finished run.

    Args:
        preset: its configuration.
        way: ``matching.derivative``.
        seed: of the run.
        recall: mean of the six recalls on the test split, over the networks of an evaluation.
    """

    preset: str
    way: str
    seed: int
    recall: float


def finished(file: Path) -> list[Line]:
    """The runs kept in a file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Line(row["preset"], row["way"], int(row["seed"]), float(row["recall"]))
            for row in csv.DictReader(lines)
        ]


def made(preset: str, way: str, seed: int, settings: Sequence[str]) -> Line:
    """Run it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lors", "distill", preset, "--no-references"]
        command += ["--out", folder, f"seed={seed}", f"matching.derivative={way}", *settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        recall = Run(folder).results.distilled.mean
    return Line(preset, way, seed, recall)


def table(lines: Sequence[Line], presets: Sequence[str], ways: Sequence[str]) -> str:
    """Mean and deviation over seeds, in Markdown; presets without a run are left out.

    >>> print(table([Line("demo", "auto", 0, 10.0), Line("demo", "auto", 1, 12.0)], ["demo"], WAYS))
    | `matching.derivative` | `demo` |
    |---|---|
    | `auto` | 11.0 ± 1.4 (2) |
    """
    shown = [preset for preset in presets if any(line.preset == preset for line in lines)]
    rows = ["| `matching.derivative` | " + " | ".join(f"`{preset}`" for preset in shown) + " |"]
    rows.append("|---" * (1 + len(shown)) + "|")
    for way in ways:
        recalls = [
            [line.recall for line in lines if (line.preset, line.way) == (preset, way)]
            for preset in shown
        ]
        if any(recalls):
            rows.append(f"| `{way}` | " + " | ".join(map(_cell, recalls)) + " |")
    return "\n".join(rows)


def _cell(recalls: Sequence[float]) -> str:
    if len(recalls) < 2:
        return "".join(f"{recall:.1f} (1)" for recall in recalls)
    return f"{Statistic.of(recalls)} ({len(recalls)})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1000, help="make at most so many")
    parser.add_argument("--out", type=Path, default=Path("runs/recall_by_derivative.csv"))
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="for all runs")
    asked = parser.parse_args()
    presets, ways = asked.presets.split(","), asked.ways.split(",")
    there = {line[:3] for line in finished(asked.out)}
    wanted = [(p, way, seed) for p in presets for seed in range(asked.seeds) for way in ways]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for cell in [cell for cell in wanted if cell not in there][: asked.runs]:
        line = made(*cell, asked.settings)
        print(*line, flush=True)
        with asked.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if file.tell() == 0:
                writer.writerow(Line._fields)
            writer.writerow(line)
    print(table(finished(asked.out), presets, ways))


if __name__ == "__main__":
    main()
