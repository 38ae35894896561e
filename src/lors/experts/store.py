"""The trajectory store: one file per expert, of which only the snapshots asked for are read."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lors.artifacts import load, open_artifact, save
from lors.config import difference
from lors.errors import InputError
from lors.experts.train import Snapshot
from lors.locks import locked

__all__ = ["TrajectoryStore"]

KIND, PARTIAL = "trajectory", "snapshot"


class TrajectoryStore:
    """A folder of expert trajectories.

    Args:
        folder: where the files are.
        origin: the data, model and training that the experts must come from.
        epochs: keep only these, of which 0 is the first, and all others as bfloat16 differences
            from it. Default: all, as they are.

    Raises:
        InputError: the folder holds experts of another origin; the message says what differs.
    """

    def __init__(
        self, folder: Path, origin: Mapping[str, Any], epochs: Sequence[int] | None = None
    ) -> None:
        self.folder, self.origin, self.epochs = folder, dict(origin), epochs
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

    def add(self, expert: int, snapshots: Iterable[Snapshot]) -> None:
        """Keep an expert, snapshot by snapshot as they come, so that none is lost in a crash.

        Args:
            expert: its number.
            snapshots: at the start and after every epoch.
        """
        thetas, learned = [], []
        header: dict[str, Any] = {"origin": self.origin}
        for epoch, snapshot in enumerate(snapshots):
            if self.epochs is None or epoch in self.epochs:
                thetas.append(snapshot.theta)
            learned.append(torch.from_numpy(snapshot.learned))
            path = self._snapshot(expert, epoch)
            if not path.exists():
                tensors = {"theta": snapshot.theta, "learned": learned[-1]}
                save(path, PARTIAL, header, tensors)
        theta, tensors = torch.stack(thetas), {"learned": torch.stack(learned[1:])}
        if self.epochs is None:
            tensors["theta"] = theta
        else:
            header["epochs"] = list(self.epochs)
            tensors["start"] = theta[0]
            tensors["moved"] = (theta[1:] - theta[0]).to(torch.bfloat16)
        save(self.path(expert), KIND, header, tensors)
        shutil.rmtree(self._unfinished(expert))

    def kept(self, expert: int) -> list[int]:
        """The epochs of which an expert has a snapshot; 0 is the start."""
        with open_artifact(self.path(expert), KIND) as (header, handle):
            return _kept(header, handle)

    def begun(self, expert: int) -> list[Snapshot]:
        """The snapshots of an expert whose training was cut short, as far as they are whole."""
        snapshots: list[Snapshot] = []
        whole = True
        for path in sorted(self._unfinished(expert).glob("*.safetensors")):
            whole = whole and path == self._snapshot(expert, len(snapshots))
            try:
                header, tensors = load(path, PARTIAL)
                snapshot = Snapshot(tensors["theta"], tensors["learned"].numpy())
                whole = whole and not difference(self.origin, header.get("origin", {}))
            except (InputError, KeyError):
                whole = False
            if whole:
                snapshots.append(snapshot)
            else:
                path.unlink()
        return snapshots

    def claim(self, expert: int, wait: bool = False) -> AbstractContextManager[bool]:
        """Whether this process is the one to train an expert; see ``locks.locked``."""
        return locked(self.folder / f".expert-{expert:03d}.lock", wait)

    def _unfinished(self, expert: int) -> Path:
        return self.folder / f"unfinished-{expert:03d}"

    def _snapshot(self, expert: int, epoch: int) -> Path:
        return self._unfinished(expert) / f"epoch-{epoch:04d}.safetensors"

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)

        Only they are read, so it is not the checksum that is checked but what can be seen of them.
        """
        path = self.path(expert)
        with open_artifact(path, KIND) as (header, handle):
            kept, compact = _kept(header, handle), bool(header.get("epochs"))
            rest = handle.get_slice("moved" if compact else "theta")
            start = handle.get_tensor("start") if compact else None
            shape = rest.get_shape()
            if (
                len(shape) != 2
                or len(kept) != shape[0] + compact
                or (start is not None and (kept[0] != 0 or list(start.shape) != shape[1:]))
            ):
                raise InputError(
                    f"the expert {str(path)!r} is damaged: its snapshots are of shape {shape}; "
                    "delete it to train it anew"
                )
            missing = sorted(set(epochs) - set(kept))
            if missing:
                raise InputError(
                    f"the expert {str(path)!r} has no snapshot of epoch {missing[0]}, only of "
                    f"{kept}: "
                    + ("set experts.compact=false" if compact else "delete it to train it anew")
                )
            parts = []
            for row in (kept.index(epoch) for epoch in epochs):
                if start is None:
                    parts.append(rest[row])
                else:
                    parts.append(start + rest[row - 1] if row else start)
            found = torch.stack(parts)
        # The sum is finite if all are, and takes a tenth of the time of asking each.
        if not found.is_floating_point() or not found.sum().isfinite():
            raise InputError(
                f"the expert {str(path)!r} is damaged: its parameters are not all finite numbers; "
                "delete it to train it anew"
            )
        return found

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


def _kept(header: Mapping[str, Any], handle: Any) -> list[int]:
    return list(header.get("epochs") or range(handle.get_slice("theta").get_shape()[0]))
