"""A model of time and memory against ranks, pairs and dataset size: docs/about/scaling.md.

    python benchmarks/model.py

The constants are those of one core of the machine on which the other benchmarks were run, and each
says which of them it is from; put yours in their place. Everything else is arithmetic.
"""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

TRAJECTORY = 0.57
"""Seconds of one trajectory of the preset demo (benchmarks/ranks.py)."""
LATENCY, BANDWIDTH = 0.0025, 0.43e9
"""Seconds and bytes per second of a sum over two ranks, gloo on one machine (the same)."""
EXPERT = 0.00064
"""Seconds to train an expert of the demo on one pair (the same)."""
ENCODE = 0.063
"""Seconds to encode a photo at 224 px and a caption (lors encode, EfficientNet-Lite0, MiniLM)."""
PASS = 0.84e-6
"""Seconds to read one pair of 2 x 256 float16 numbers in one pass (benchmarks/shards.py)."""
BASE, PER_PAIR = 1.0e9, 90
"""Bytes of a process that selects, without pairs and for each pair (the same)."""


def iteration(trajectories: int, ranks: int, numbers: int, trajectory: float = TRAJECTORY) -> float:
    """Seconds of an iteration: the trajectories of the busiest rank, and one sum over all ranks.

    >>> iteration(1, 1, 10**6) == TRAJECTORY
    True
    """
    message = 0.0
    if ranks > 1:
        message = LATENCY * math.log2(ranks) + 2 * (ranks - 1) / ranks * 4 * numbers / BANDWIDTH
    return math.ceil(trajectories / ranks) * trajectory + message


def set_numbers(pairs: int, image: int, text: int, rank: int) -> int:
    """How many numbers an iteration averages."""
    return pairs * (image + text + 2 * rank + 1) + 2


def efficiency() -> Table:
    """The throughput of K ranks with a trajectory each, as a share of K times that of one."""
    sets = {
        "20 images of 32 px (demo)": set_numbers(20, 3 * 32**2, 64, 10),
        "100 pairs of features": set_numbers(100, 1280, 384, 10),
        "100 images of 224 px": set_numbers(100, 3 * 224**2, 768, 10),
        "500 images of 224 px": set_numbers(500, 3 * 224**2, 768, 20),
    }
    counts = (2, 4, 8, 64)
    table = Table("set", "MB", *(f"{count} ranks" for count in counts))
    for name, numbers in sets.items():
        shares = [TRAJECTORY / iteration(count, count, numbers) for count in counts]
        megabytes = f"{4 * numbers / 1e6:.2g}"
        table.add_row(name, megabytes, *(f"{100 * share:.0f} %" for share in shares))
    return table


def datasets(ranks: int = 64, picks: int = 1000, epochs: int = 10) -> Table:
    """Core hours, wall time and memory of the steps that grow with the dataset."""
    table = Table("pairs", "encode", "one expert", f"select {picks:,}", "memory of a rank")
    for pairs in (10**6, 10**8, 10**9):
        select = pairs * PASS * (picks + 2)
        cells = [
            f"{seconds / 3600:,.0f} core hours, {_words(seconds / count)}"
            for seconds, count in (
                (pairs * ENCODE, ranks),
                (pairs * epochs * EXPERT, 1),
                (select, ranks),
            )
        ]
        table.add_row(f"{pairs:,}", *cells, f"{(BASE + PER_PAIR * pairs) / 1e9:.1f} GB")
    return table


def _words(seconds: float) -> str:
    hours = seconds / 3600
    if hours < 1:
        return f"{seconds / 60:.0f} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"


if __name__ == "__main__":
    Console(width=140).print(efficiency(), datasets())
