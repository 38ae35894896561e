"""Fuzz every reader, guided by coverage, and print a table of what came of it.

    python -m tests.fuzz --inputs 100000
    python -m tests.fuzz --inputs 500 --targets webdataset table
    python -m tests.fuzz --minimise

What is found lies below ``runs/fuzz/TARGET/findings``, one folder for each bug: the smallest input
and why. The same command goes on where it stopped, with more inputs further; the same seed gives
the same inputs. ``--minimise`` shortens what was found and puts it, if it is small, below
``tests/fuzz/cases``, where ``tests/fuzz/test_cases.py`` reads it at every run of the tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch

from tests.fuzz.explore import Exploration, Tally, minimised, slug
from tests.fuzz.limits import SECONDS
from tests.fuzz.targets import TARGETS

CASES = Path(__file__).parent / "cases"
CASE_BYTES = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=10_000, help="of all targets together")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of one input")
    parser.add_argument("--minutes", type=float, default=600, help="limit of each target")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"))
    parser.add_argument("--minimise", action="store_true", help="shorten what was found")
    options = parser.parse_args()
    torch.set_num_threads(1)  # children are forked
    names = [n for n in options.targets if not (need := TARGETS[n].needs) or find_spec(need)]
    if options.minimise:
        keep_cases(names, options.out)
        return
    total, tallies = sum(TARGETS[name].share for name in names), {}
    for name in names:
        inputs = round(options.inputs * TARGETS[name].share / total)
        folder = (options.out / slug(name)).resolve()
        exploration = Exploration(name, TARGETS[name], folder, options.seed, options.seconds)
        until = time.monotonic() + 60 * options.minutes
        tallies[name] = exploration.run(inputs, until)
        print(row(name, tallies[name]), file=sys.stderr, flush=True)
    print_table(tallies)


def print_table(tallies: dict[str, Tally]) -> None:
    print("| target | inputs | seconds | lines of lors | refused | loaded | findings |")
    print("|---|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        print(row(name, tally))
    together = Tally()
    for tally in tallies.values():
        together.inputs += tally.inputs
        together.seconds += tally.seconds
        together.kinds.update(tally.kinds)
    print(row("all", together))


def row(name: str, tally: Tally) -> str:
    refused, loaded = tally.kinds["refused"], tally.kinds["loaded"]
    return (
        f"| {name} | {tally.inputs:,} | {tally.seconds:,.0f} | {tally.lines or ''} | "
        f"{refused:,} | {loaded:,} | {len(tally.findings())} |"
    )


def keep_cases(names: list[str], out: Path) -> None:
    """Shorten what was found, and keep what is small as a case of the tests."""
    for name in names:
        for folder in sorted((out / slug(name) / "findings").glob("*")):
            kind = (folder / "why.txt").read_text("utf-8").partition("\n")[0]
            with tempfile.TemporaryDirectory() as place:
                data = (folder / "input").read_bytes()
                small = minimised(TARGETS[name], data, kind, Path(place) / "there")
            (folder / "small").write_bytes(small)
            print(f"{name}: {kind}: {len(data)} bytes, now {len(small)}", flush=True)
            if len(small) <= CASE_BYTES:
                case = CASES / slug(name) / folder.name
                case.parent.mkdir(parents=True, exist_ok=True)
                case.write_bytes(small)


if __name__ == "__main__":
    main()
