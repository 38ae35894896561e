"""Seconds and memory of ``lors select`` on a million pairs of embeddings in shards.

    OMP_NUM_THREADS=1 python benchmarks/shards.py --pairs 250000 500000 1000000 --ranks 1 2

Writes random embeddings with clusters as shards of float16 to a temporary folder (1 GB for a
million pairs of 256 numbers a side), chooses from them with the command itself, alone and under
torchrun, and prints a table and JSON: seconds, seconds per pass over the pairs, the largest peak of
memory (resident set) of a process, and its memory over time. A pass is what a method reads per
pick: its seconds are those beyond random selection, which reads only what any command does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

METHODS = ("random", "clip-score", "herding", "k-center")
CLUSTERS, SHARD, HELD_OUT, MOMENTS = 1000, 25_000, 1000, 10


def write_shards(folder: Path, pairs: int, dim: int) -> None:
    """Image and text embeddings that share clusters, in the layout of clip-retrieval."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLUSTERS, dim), dtype=np.float32)
    for number, start in enumerate(range(0, pairs, SHARD)):
        size = min(SHARD, pairs - start)
        cluster = rng.integers(0, CLUSTERS, size)
        for side in ("img", "text"):
            rows = centres[cluster] + rng.standard_normal((size, dim), dtype=np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            path = folder / f"{side}_emb" / f"{side}_emb_{number:04d}.npy"
            path.parent.mkdir(exist_ok=True)
            np.save(path, rows.astype(np.float16))


def command(method: str, root: Path, pairs: int, picks: int, out: Path, ranks: int) -> list[str]:
    """``lors select``, with as little training as can be: this is about reading."""
    start = ["-m", "lors"]
    if ranks > 1:
        start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        start += ["-m", "lors"]
    last = -(-pairs // SHARD) - 1
    names = {side: f"{side}_emb/{side}_emb_{{0000..{last:04d}}}.npy" for side in ("img", "text")}
    settings = {
        "data.root": root,
        "data.annotations.images": names["img"],
        "data.annotations.texts": names["text"],
        "data.holdout": HELD_OUT / pairs,
        "distill.budget": picks,
        "scorer": "given",
        "evaluate": "{seeds: 1, epochs: 2, checks: 1}",
    }
    changes = [f"{key}={value}" for key, value in settings.items()]
    options = ["--out", str(out), "--no-references"]
    return [sys.executable, *start, "select", method, "features", *changes, *options]


def watch(arguments: list[str], home: Path) -> dict[str, Any]:
    """Run a command and sample the memory of its processes."""
    environment = {**os.environ, "LORS_HOME": str(home)}
    begun, samples = time.perf_counter(), []
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            samples.append(_largest(root))
            time.sleep(0.1)
        assert process.stderr is not None
        errors = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}\n{errors}")
    places = np.linspace(0, len(samples) - 1, MOMENTS + 1).astype(int)
    return {
        "seconds": time.perf_counter() - begun,
        "peak_mb": max(samples) / 1e6,
        "mb_over_time": [round(samples[place] / 1e6) for place in places],
    }


def _largest(root: psutil.Process) -> int:
    sizes = [0]
    try:
        for process in (root, *root.children(recursive=True)):
            sizes.append(process.memory_info().rss)
    except psutil.NoSuchProcess:
        pass
    return max(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[250_000, 500_000, 1_000_000])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--picks", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where the shards go; default: temporary")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as temporary:
        folder = Path(temporary)
        write_shards(folder, max(asked.pairs), asked.dim)
        for ranks in asked.ranks:
            for pairs in asked.pairs:
                for method in asked.methods:
                    out = folder / f"{method}-{pairs}-{ranks}"
                    given = command(method, folder, pairs, asked.picks, out, ranks)
                    row = {"method": method, "pairs": pairs, "ranks": ranks}
                    rows.append({**row, **watch(given, folder / "home")})
                    rows[-1]["picks"] = (out / "selection.csv").read_text().split("\n")[1:-1]
                    print(json.dumps({k: v for k, v in rows[-1].items() if k != "picks"}))
    chosen = [row.pop("picks") for row in rows]
    table = Table("method", "pairs", "ranks", "seconds", "s per pass", "peak MB", "MB over time")
    for row, picks in zip(rows, chosen, strict=True):
        same = ("method", "pairs")
        first = next(
            p for r, p in zip(rows, chosen, strict=True) if all(r[k] == row[k] for k in same)
        )
        row["picks_as_by_first_ranks"] = picks == first
        beside = (r for r in rows if all(r[k] == row[k] for k in ("pairs", "ranks")))
        base = next((r["seconds"] for r in beside if r["method"] == "random"), None)
        if base is not None and row["method"] in ("herding", "k-center"):
            # Two passes for the mean and the norms, then one for each pick but the first.
            row["seconds_per_pass"] = (row["seconds"] - base) / (asked.picks + 1)
        table.add_row(
            row["method"],
            f"{row['pairs']:,}",
            str(row["ranks"]),
            f"{row['seconds']:.1f}",
            f"{row['seconds_per_pass']:.2f}" if "seconds_per_pass" in row else "",
            f"{row['peak_mb']:.0f}",
            " ".join(map(str, row["mb_over_time"])),
        )
    Console(width=140).print(table)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
