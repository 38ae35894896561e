"""The trajectory store: one file per expert, of which only the snapshots asked for are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lors.artifacts import open_artifact, save
from lors.config import difference
from lors.errors import InputError

__all__ = ["TrajectoryStore"]

KIND = "trajectory"


class TrajectoryStore:
    """A folder of expert trajectories.

    Args:
        folder: where the files are.
        origin: the data, model and training that the experts must come from.

    Raises:
        InputError: the folder holds experts of another origin; the message says what differs.
    """

    def __init__(self, folder: Path, origin: Mapping[str, Any]) -> None:
        self.folder, self.origin = folder, dict(origin)
        for path in sorted(folder.glob("expert-*.safetensors")):
            with open_artifact(path, KIND) as (header, _):
                differs = difference(self.origin, header.get("origin", {}))
            if differs:
                raise InputError(
                    f"the experts in {str(folder)!r} do not fit this run ({'; '.join(differs)}): "
                    "choose another experts.folder or change the configuration back"
                )

    def path(self, expert: int) -> Path:
        """The file of one expert."""
        return self.folder / f"expert-{expert:03d}.safetensors"

    def missing(self, count: int) -> list[int]:
        """Which of the first ``count`` experts are not there yet."""
        return [expert for expert in range(count) if not self.path(expert).exists()]

    def add(self, expert: int, trajectory: Tensor) -> None:
        """Keep the parameters of an expert after every epoch. Shape: (T + 1, P)"""
        save(self.path(expert), KIND, {"origin": self.origin}, {"theta": trajectory})

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)"""
        with open_artifact(self.path(expert), KIND) as (_, handle):
            theta = handle.get_slice("theta")
            return torch.stack([theta[epoch] for epoch in epochs])
