"""Distil the built-in scenes, and check that LoRS does what the paper says it does.

LoRS must beat random pairs of equal storage, tuned on val, by half as much again, and the same run
without a learned similarity by a clear margin. Run it with ``make demo``; it ends with an error if
it does not hold.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from lors.cli.app import console
from lors.cli.display import results_table
from lors.runs.folders import saved_results

LORS = [sys.executable, "-m", "lors"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
OUT, TWIN = Path("runs/demo"), Path("runs/demo-identity")


def main() -> None:
    begun = time.monotonic()
    # One run for each of two cores: LoRS, and its twin with the identity similarity. They share
    # the experts: each trains those that the other does not.
    twin = subprocess.Popen(
        [*LORS, "distill", "demo", "similarity.kind=identity", "--no-references", "--out", TWIN],
        env=ONE_THREAD,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run([*LORS, "distill", "demo", "--out", OUT], env=ONE_THREAD, check=True)
    if twin.wait():
        sys.exit("the run with the identity similarity failed")

    results, twin_results = saved_results(OUT), saved_results(TWIN)
    console.print(results_table({**results.rows, "same, S = I": twin_results.distilled}))
    rows = (results.distilled, twin_results.distilled, results.random_pairs)
    lors, identity, random = (row.mean for row in rows)
    console.print(
        f"With the storage of {results.random_pairs.pairs} pairs, LoRS reaches a mean recall of "
        f"{lors:.1f}: {lors / random:.1f} times random pairs, {lors / identity:.1f} times the same "
        f"run with S = I. It took {time.monotonic() - begun:.0f} s."
    )
    if lors < 1.5 * random or lors < 1.1 * identity:
        sys.exit("that is less than it should be")


if __name__ == "__main__":
    main()
