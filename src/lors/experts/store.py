"""The trajectory store: one file per expert, of which only the snapshots asked for are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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

    def add(self, expert: int, trajectory: Tensor, learned: np.ndarray) -> None:
        """Keep an expert.

        Args:
            expert: its number.
            trajectory: its parameters at the start and after every epoch. Shape: (T + 1, P)
            learned: which pairs it had learned at which epoch. Shape: (T, M)
        """
        tensors = {"theta": trajectory, "learned": torch.from_numpy(learned)}
        save(self.path(expert), KIND, {"origin": self.origin}, tensors)

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)"""
        with open_artifact(self.path(expert), KIND) as (_, handle):
            theta = handle.get_slice("theta")
            return torch.stack([theta[epoch] for epoch in epochs])

    def learned(self, expert: int) -> np.ndarray:
        """Which pairs an expert had learned at which epoch. Shape: (T, M)"""
        with open_artifact(self.path(expert), KIND) as (_, handle):
            if "learned" not in handle.keys():  # noqa: SIM118
                raise InputError(
                    f"the experts in {str(self.folder)!r} are from a version of lors that did not "
                    "keep what was learned when: delete them to train them anew"
                )
            learned: np.ndarray = handle.get_tensor("learned").numpy()
        return learned
