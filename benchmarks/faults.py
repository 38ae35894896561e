"""Let file operations fail, and processes die at them, in runs of random small configurations.

Each configuration runs once undisturbed. Then it is started again and again in a folder of its own,
each time with a fault at a random file operation: an error of the disk, once or from then on; the
death of the process before, after or in the middle of the operation; a power cut, which leaves
zeros of what was not synced. At last it is left alone, and must leave the bits of the undisturbed
run: the set, results, metrics, selection, card, caches and experts. A disturbed run must end with
an error that says what is wrong, or well. Ends with an error if anything is otherwise.

    python -m benchmarks.faults --faults 5000
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from tests.faults.cases import Tally, draw_case, try_chain, write_embeddings

CHAINS = 10
"""Of each configuration."""


HOW = {
    "error": "an error",
    "lasting": "errors from then on",
    "kill": "a kill",
    "power": "a power cut",
}


def table(tally: Tally) -> Table:
    """Faults of each kind, by the operation that they struck and by how the run ended."""
    shown = Table("", *HOW.values(), "all")
    for place, title in ((1, "struck"), (2, "the run")):
        for name in sorted({key[place] for key in tally.faults}):
            counts = [
                sum(n for key, n in tally.faults.items() if key[0] == how and key[place] == name)
                for how in HOW
            ]
            shown.add_row(f"{title}: {name}", *map(str, (*counts, sum(counts))))
        shown.add_section()
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--faults", type=int, default=1000, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    draw, tally, begun = random.Random(wanted.seed), Tally(), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write_embeddings(root / "data")
        while tally.faults.total() < wanted.faults:
            case = draw_case(draw, root / "whole", root / "data")
            for chain in range(CHAINS):
                seed = draw.randrange(2**32)
                try:
                    try_chain(case, random.Random(seed), root / "chain", tally)
                except AssertionError as error:
                    sys.exit(f"{case}, chain {chain} of seed {seed}: {error}\n{case.config.yaml()}")
                shutil.rmtree(root / "chain")
            shutil.rmtree(case.folder)
            print(f"{tally.faults.total()} faults, {tally.chains.total()} chains", flush=True)
    Console().print(table(tally))
    print(
        f"{tally.faults.total()} faults in {tally.chains.total()} chains of {len(tally.chains)} "
        f"kinds of runs, {time.monotonic() - begun:.0f} s of which {time.process_time():.0f} s of "
        "computing; every chain ended with the bits of the undisturbed run"
    )


if __name__ == "__main__":
    main()
