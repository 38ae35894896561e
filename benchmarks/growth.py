"""How the cost of an iteration grows: log-log slopes in N, m, t, rank, image size and dataset size.

    OMP_NUM_THREADS=1 python benchmarks/growth.py

A slope of 1 is proportional, of 0 independent. Seconds are of CPU time, the least of several rounds
by turns, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from lors.config import load_config
from lors.matching import matcher_of
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator

BASE = {
    "data.pairs": "{train: 250, val: 50, test: 50}",
    "experts": "{count: 1, epochs: 2, batch_size: 50}",
    "matching": "{gradient: exact, max_start_epoch: 2, expert_epochs: 1}",
    "matching.steps": "4",
    "matching.batch_size": "20",
    "distill.budget": "81",  # N = 80: every batch of the first pass is full
    "similarity": "{kind: lowrank, rank: 5}",
}
FACTORS = {
    "N, synthetic pairs": ("distill.budget", (41, 81, 161, 241)),
    "m, pairs per inner step": ("matching.batch_size", (10, 20, 40, 80)),
    "t, inner steps": ("matching.steps", (2, 4, 8, 16)),
    "r, rank of S": ("similarity.rank", (2, 5, 10, 20)),
    "pixels of an image": ("encoder.image_size", (16, 32, 64)),
    "M, real pairs": ("data.pairs.train", (250, 500, 1000, 2000)),
}


def iteration(key: str, value: int, folder: str) -> Callable[[], object]:
    """An iteration with one setting changed."""
    settings = {**BASE, "experts.folder": folder, key: str(value)}
    bench = setting_of(load_config("demo", [f"{k}={v}" for k, v in settings.items()]))
    matcher, pairs = matcher_of(bench), start_pairs(bench)
    return lambda: matcher.backward(pairs, generator(0))


def cpu_seconds(steps: list[Callable[[], object]], rounds: int) -> list[float]:
    """The least CPU time of each, by turns."""
    least = [float("inf")] * len(steps)
    for turn in range(rounds + 1):
        for place, step in enumerate(steps):
            begun = time.process_time()
            step()
            if turn:  # the first fills caches
                least[place] = min(least[place], time.process_time() - begun)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    table = Table("factor", "values", "ms per iteration", "slope")
    found = {}
    for name, (key, values) in FACTORS.items():
        with tempfile.TemporaryDirectory() as root:
            steps = [iteration(key, value, f"{root}/{value}") for value in values]
            seconds = cpu_seconds(steps, arguments.rounds)
        sizes = np.array(values)
        if "pixels" in name:
            sizes = sizes**2
        elif "synthetic" in name:
            sizes = sizes - 1  # one pair pays for S
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        found[name] = {"values": sizes.tolist(), "seconds": seconds, "slope": slope}
        milliseconds = ", ".join(f"{1000 * s:.0f}" for s in seconds)
        table.add_row(name, ", ".join(map(str, sizes)), milliseconds, f"{slope:.2f}")
    Console().print(table)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
