"""The trajectory store: one file per expert, of which only the snapshots asked for are read."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lors.config import difference
from lors.experts.train import Snapshot
from lors.files.artifacts import leftovers, load, open_artifact, remove_leftovers, save
from lors.system.errors import InputError
from lors.system.locks import locked

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
        self._sound: set[tuple[Path, int, int, int]] = set()
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
        for epoch, snapshot in enumerate(snapshots):
            if self.epochs is None or epoch in self.epochs:
                thetas.append(snapshot.theta)
            learned.append(torch.from_numpy(snapshot.learned))
            path = self._snapshot(expert, epoch)
            if not path.exists():
                tensors = {"theta": snapshot.theta, "learned": learned[-1]}
                save(path, PARTIAL, {"origin": self.origin}, tensors)
        self.write(expert, torch.stack(thetas), torch.stack(learned[1:]))
        shutil.rmtree(self._unfinished(expert))

    def write(self, expert: int, theta: Tensor, learned: Tensor | None) -> None:
        """Keep an expert that is known as a whole.

        Args:
            expert: its number.
            theta: its parameters after each epoch that is kept. Shape: (epochs, P)
            learned: which pairs it had learned at which epoch, if known. Shape: (T, M), bool
        """
        header: dict[str, Any] = {"origin": self.origin}
        tensors = {} if learned is None else {"learned": learned}
        if self.epochs is None:
            tensors["theta"] = theta
            header["checks"] = [check(row) for row in theta]
        else:
            header["epochs"] = list(self.epochs)
            tensors["start"] = theta[0]
            tensors["moved"] = (theta[1:] - theta[0]).to(torch.bfloat16)
            header["checks"] = [check(theta[0]), *(check(row) for row in tensors["moved"])]
        if learned is not None:
            header["learned_check"] = check(learned)
        save(self.path(expert), KIND, header, tensors)

    def tidy(self) -> None:
        """Remove what processes that were killed left of experts that are finished."""
        for path in sorted(self.folder.glob("expert-*.safetensors")):
            number = path.stem.removeprefix("expert-")
            begun = self.folder / f"unfinished-{number}"
            if not number.isdigit() or not (begun.exists() or leftovers(self.folder, path.name)):
                continue
            with suppress(OSError), self.claim(int(number)) as mine:
                if mine:
                    shutil.rmtree(begun, ignore_errors=True)
                    remove_leftovers(self.folder, path.name)

    def kept(self, expert: int) -> list[int]:
        """The epochs of which an expert has a snapshot; 0 is the start."""
        with open_artifact(self.path(expert), KIND) as (header, handle):
            return _kept(header, handle)

    def begun(self, expert: int) -> list[Snapshot]:
        """The snapshots of an expert whose training was cut short, as far as they are whole.

        Only for who has claimed the expert: what is of no use is removed.
        """
        snapshots: list[Snapshot] = []
        whole = True
        remove_leftovers(self.folder, self.path(expert).name)
        remove_leftovers(self._unfinished(expert))
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

        Only they are read, and each is checked by its own checksum when it is first read.

        Raises:
            InputError: there is no such snapshot, or it is damaged.
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
                raise _damaged(path, f"its snapshots are of shape {shape}")
            missing = sorted(set(epochs) - set(kept))
            if missing:
                raise InputError(
                    f"the expert {str(path)!r} has no snapshot of epoch {missing[0]}, only of "
                    f"{kept}: "
                    + ("set experts.compact=false" if compact else "delete it to train it anew")
                )
            rows = [kept.index(epoch) for epoch in epochs]
            stored = {row: rest[row - compact] for row in rows if row or start is None}
            if start is not None:
                stored[0] = start
            self._check_rows(path, header.get("checks"), len(kept), stored)
            like = rest[0] if start is None else start
            found = _new_rows(len(rows), like)
            for place, row in zip(found, rows, strict=True):
                place.copy_(stored[row])
                if row and start is not None:
                    place.add_(start)
        # The sum is finite if all are, and takes a tenth of the time of asking each.
        if not found.is_floating_point() or not found.sum().isfinite():
            raise _damaged(path, "its parameters are not all finite numbers")
        return found

    def _check_rows(
        self,
        path: Path,
        checks: Sequence[int] | None,
        count: int,
        stored: Mapping[int, Tensor],
    ) -> None:
        """Compare what was read with its checksums, once per file; experts of before have none."""
        if not checks:
            return
        if len(checks) != count:
            raise _damaged(path, f"it has {count} snapshots and {len(checks)} checksums")
        file = path.stat()
        for row, numbers in stored.items():
            seen = (path, row, file.st_mtime_ns, file.st_ino)
            if seen not in self._sound and check(numbers) != checks[row]:
                raise _damaged(path, f"snapshot {row} does not fit its checksum")
            self._sound.add(seen)

    def learned(self, expert: int) -> np.ndarray:
        """Which pairs an expert had learned at which epoch. Shape: (T, M)"""
        with open_artifact(self.path(expert), KIND) as (header, handle):
            if "learned" not in handle.keys():  # noqa: SIM118
                raise InputError(
                    f"the experts in {str(self.folder)!r} do not say what they learned when, as "
                    "imported ones and those of old versions of lors: train others, with another "
                    "experts.folder"
                )
            learned: Tensor = handle.get_tensor("learned")
        if header.get("learned_check") not in (None, check(learned)):
            raise _damaged(self.path(expert), "what it learned does not fit its checksum")
        return learned.numpy()


def _new_rows(count: int, like: Tensor) -> Tensor:
    """New memory by way of numpy: it asks for huge pages, which fill faster."""
    memory = np.empty(count * like.nbytes, np.uint8)
    return torch.from_numpy(memory).view(like.dtype).view(count, like.numel())


def check(row: Tensor) -> int:
    """A checksum that is fast enough for every read of a snapshot."""
    return zlib.crc32(row.contiguous().view(torch.uint8).numpy().data)


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"the expert {str(path)!r} is damaged: {why}; delete it to train it anew")


def _kept(header: Mapping[str, Any], handle: Any) -> list[int]:
    return list(header.get("epochs") or range(handle.get_slice("theta").get_shape()[0]))
