"""Do the defaults learn on embeddings of any scale and number of dimensions?

    python benchmarks/scales.py [--methods hindsight,lors] [--dims 2,16,128,1024,4096] [--quick]

Draws pairs from latent factors: both sides are linear maps of the same factors, with noise. Distils
them with the defaults of ``lors.distill``, and prints the mean recall of the set, of random pairs
of equal storage with the best loss and rate on val, and of the full data, on 300 test pairs. Each
number of dimensions is tried as it is, times 0.001, times 1000, with an offset of ten deviations,
and with rows of length 1. ``--quick`` takes fewer iterations, experts and networks.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lors
from lors.data.anything import as_pairs
from lors.runs.distill import configured

Side = np.ndarray
KINDS: dict[str, Callable[[Side], Side]] = {
    "plain": lambda x: x,
    "x 0.001": lambda x: x * 1e-3,
    "x 1000": lambda x: x * 1e3,
    "offset": lambda x: x + 10 * x.std(),
    "length 1": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
}
QUICK = {
    "iterations": 60,
    "evaluate_every": 20,
    "experts": {"count": 2},
    "evaluate": {"seeds": 2, "tried_losses": ("nce",), "tried_rates": (0.03, 0.1, 0.3, 1.0)},
}


def latent_pairs(count: int, dim: int, factors: int = 32, seed: int = 0) -> list[Side]:
    """Two sides that see the same factors, each with noise of its own. Shape of each: (count, dim)

    What makes them hard to match does not depend on the number of dimensions: noise on the factors,
    and as much noise again in all other directions.
    """
    rng = np.random.default_rng(seed)
    factors = min(factors, dim)
    cause, noise = rng.normal(size=(count, factors)), 0.12 * factors**0.5
    sides = []
    for _ in range(2):
        directions = np.linalg.qr(rng.normal(size=(dim, factors)))[0].T
        seen = cause + noise * rng.normal(size=(count, factors))
        other = noise * (factors / dim) ** 0.5 * rng.normal(size=(count, dim))
        sides.append((seen @ directions + other).astype(np.float32))
    return sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="hindsight,lors")
    parser.add_argument("--dims", default="2,16,128,1024,4096")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    print("| method | dimensions | embeddings | full data | random pairs | set | set / random |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for dim in map(int, asked.dims.split(",")):
        for kind in asked.kinds.split(","):
            sides = [KINDS[kind](side) for side in latent_pairs(1500, dim)]
            real = as_pairs(*(side[:1200] for side in sides), test=tuple(s[1200:] for s in sides))
            for method in asked.methods.split(","):
                options = dict(QUICK) if asked.quick else {}
                config = configured(real, pairs=asked.pairs, method=method, options=options)
                with tempfile.TemporaryDirectory() as folder:
                    found = lors.run(config, Path(folder), pairs=real)
                rows = (found.full_data, found.random_pairs, found.distilled)
                full, random, ours = (row.mean for row in rows)
                print(
                    f"| {method} | {dim} | {kind} | {full:.1f} | {random:.1f} | {ours:.1f} | "
                    f"{ours / random:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
