"""Drawing where an inner run starts and what it should reach, from an expert on disk."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.experts import Snapshot, TrajectoryStore

__all__ = ["published", "ratios"]


def published(path: Path, expert: int = 0, epoch: int = 1) -> list[Tensor]:
    """A start and its target as the published code draws them: a whole buffer is unpickled."""
    buffer = torch.load(path, weights_only=True)
    return [torch.cat([p.reshape(-1) for p in buffer[expert][e]]) for e in (epoch, epoch + 1)]


def ratios(rounds: int, parameters: int = 5_000_000, epochs: int = 10) -> list[Ratio]:
    """One of 11 snapshots and the next, against loading them all as published code does.

    A pass is reading a file with as many bytes as the two have, from the system's memory into new
    memory. The paper's setting keeps the start and epochs 1, 2 and 10 if compact.
    """
    draw = torch.Generator().manual_seed(0)
    steps = 0.01 * torch.randn(epochs + 1, parameters, generator=draw)
    trajectory = steps.cumsum(0)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        whole, two = Path(folder, "whole.pt"), Path(folder, "two")
        parts = trajectory.split([parameters // 2, parameters - parameters // 2], 1)
        torch.save([[[side[e].clone() for side in parts] for e in range(epochs + 1)]], whole)
        trajectory[1:3].numpy().tofile(two)
        for case, kept in (("all snapshots kept", None), ("compact", [0, 1, 2, epochs])):
            store = TrajectoryStore(Path(folder, case), {}, kept)
            store.add(0, (Snapshot(theta, np.zeros(1, dtype=bool)) for theta in trajectory))
            found = store.snapshots(0, [1, 2])
            bytes_kept = store.path(0).stat().st_size / whole.stat().st_size
            moved = (trajectory[2] - trajectory[0]).norm()
            error = float((found[1] - trajectory[2]).norm() / moved)
            lines.append(
                side_by_side(
                    f"{parameters:,} parameters, {case} (a pass: reading the bytes)",
                    partial(store.snapshots, 0, [1, 2]),
                    partial(published, whole),
                    rounds,
                    floor=lambda: np.fromfile(two, np.uint8),
                    more={"bytes": bytes_kept, "error": error},
                )
            )
    return lines
