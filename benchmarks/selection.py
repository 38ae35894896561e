"""Seconds and memory of herding and k-center on a million memory-mapped pairs.

    python benchmarks/selection.py --pairs 1000000 --dim 512 --picks 500

Writes random embeddings with clusters to a temporary folder (4 GB by default, deleted afterwards),
chooses from them with each method in a process of its own, and prints a table and JSON. The peak
counts the pages of the mapped files, which the system can take back.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from lors.files.arrays import read_array
from lors.selection.candidates import Candidates
from lors.selection.herding import herding
from lors.selection.k_center import k_center

METHODS = {"herding": herding, "k-center": k_center}
CLUSTERS, CHUNK = 1000, 20_000


def write_embeddings(folder: Path, pairs: int, dim: int) -> None:
    """Normalised image and text embeddings that share clusters, chunk by chunk."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, CLUSTERS, pairs)
    for side in ("images", "texts"):
        centres = rng.standard_normal((CLUSTERS, dim), dtype=np.float32)
        mapped = np.lib.format.open_memmap(
            folder / f"{side}.npy", "w+", dtype=np.float32, shape=(pairs, dim)
        )
        for start in range(0, pairs, CHUNK):
            block = centres[cluster[start : start + CHUNK]]
            block += rng.standard_normal(block.shape, dtype=np.float32)
            mapped[start : start + CHUNK] = block / np.linalg.norm(block, axis=1, keepdims=True)
        mapped.flush()


def measure(method: str, folder: Path, picks: int) -> dict[str, float | str]:
    """One selection: seconds to standardise, seconds to choose, and the peak of memory."""
    images, texts = (read_array(folder / f"{side}.npy") for side in ("images", "texts"))
    begun = time.perf_counter()
    candidates = Candidates(images, texts, np.arange(len(images)))
    standardised = time.perf_counter()
    _, scores = METHODS[method](candidates, picks)
    chosen = time.perf_counter()
    return {
        "method": method,
        "standardise_s": round(standardised - begun, 1),
        "choose_s": round(chosen - standardised, 1),
        "total_s": round(chosen - begun, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
        "last_score": round(float(scores[-1]), 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--picks", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where to put the temporary folder")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        write_embeddings(Path(folder), arguments.pairs, arguments.dim)
        # A peak is a process's: each method needs a fresh one.
        spawn = multiprocessing.get_context("spawn")
        rows = []
        for method in METHODS:
            with spawn.Pool(1) as pool:
                rows.append(pool.apply(measure, (method, Path(folder), arguments.picks)))

    table = Table(title=f"{arguments.picks} of {arguments.pairs:,} pairs, 2 x {arguments.dim}")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "method" else "right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
    sizes = {key: getattr(arguments, key) for key in ("pairs", "dim", "picks")}
    print(json.dumps({**sizes, "rows": rows}))


if __name__ == "__main__":
    main()
