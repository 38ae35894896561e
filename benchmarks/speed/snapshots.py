"""Drawing where an inner run starts and what it should reach, from an expert on disk."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.experts import Snapshot, TrajectoryStore

__all__ = ["ratios"]


def ratios(rounds: int, parameters: int = 5_000_000, epochs: int = 10) -> list[Ratio]:
    """One of 11 snapshots and the next, against loading them all as published code does.

    The floor is a file with those two snapshots alone. The paper's setting keeps the start and
    epochs 1, 2 and 10 if compact.
    """
    draw = torch.Generator().manual_seed(0)
    steps = 0.01 * torch.randn(epochs + 1, parameters, generator=draw)
    trajectory = steps.cumsum(0)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        whole, two = Path(folder, "whole.safetensors"), Path(folder, "two.safetensors")
        save_file({"theta": trajectory}, whole)
        save_file({"theta": trajectory[1:3].clone()}, two)
        for case, kept in (("all snapshots kept", None), ("compact", [0, 1, 2, epochs])):
            store = TrajectoryStore(Path(folder, case), {}, kept)
            store.add(0, (Snapshot(theta, np.zeros(1, dtype=bool)) for theta in trajectory))
            found = store.snapshots(0, [1, 2])
            bytes_kept = store.path(0).stat().st_size / whole.stat().st_size
            moved = (trajectory[2] - trajectory[0]).norm()
            error = float((found[1] - trajectory[2]).norm() / moved)
            lines.append(
                side_by_side(
                    f"{parameters:,} parameters, {case} (a pass: reading the two alone)",
                    partial(store.snapshots, 0, [1, 2]),
                    lambda: load_file(whole)["theta"].clone()[1:3],
                    rounds,
                    floor=lambda: load_file(two)["theta"].clone(),
                    more={"bytes": bytes_kept, "error": error},
                )
            )
    return lines
