"""Where an inner run starts and what it should reach: drawn from the experts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import torch
from torch import Tensor

from lors.config import ExpertsConfig
from lors.config.matchers import TrajectoryOptions
from lors.encoders import FlatModel
from lors.experts import TrajectoryStore
from lors.matching.shortcut import Shortcuts

__all__ = ["Starts", "Trajectories"]


class Trajectories(Protocol):
    """Experts as they are, or made straight."""

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)"""
        ...


class Starts:
    """Draws θ₀ = expert[s] and θ* = expert[s + k].

    With ``matching.starts=independent`` the image side and the text side of the same expert each
    have an epoch s of their own, so that a set meets sides that are unequally far. This is AMD's
    finding: the text side learns faster, and one epoch for both is too early for one of them.

    What the next draw will need can be read while other work goes on: see ``prefetch``.

    Args:
        store: the trajectories to match.
        experts: how many there are, and of how many epochs.
        flat: the dual encoder, which tells the sides and the weight tensors of θ.
        options: how to match.
    """

    def __init__(
        self,
        store: TrajectoryStore,
        experts: ExpertsConfig,
        flat: FlatModel,
        options: TrajectoryOptions,
    ) -> None:
        self.options, self.sides, self.count = options, flat.sides, experts.count
        self.experts: Trajectories = store
        if options.shortcut:
            self.experts = Shortcuts(store, experts.epochs, flat.sizes)

        self._reader = ThreadPoolExecutor(1, "prefetch")
        self._ahead: list[tuple[tuple[int, list[int]], Future[tuple[Tensor, Tensor]]]] = []

    def draw(
        self, generator: torch.Generator, like: Tensor, phase: int = 0
    ) -> tuple[Tensor, Tensor]:
        """A start and its target. Shapes: (P,), (P,)

        Args:
            generator: draws the expert and the epochs.
            like: gives the device and the type.
            phase: whose range the epochs are drawn from.
        """
        drawn = self._drawn(generator, phase)
        for place, (expected, reading) in enumerate(self._ahead):
            if expected == drawn:
                del self._ahead[place]
                return reading.result()
        return self.snapshots(*drawn, like)

    def prefetch(self, generator: torch.Generator, like: Tensor, phase: int = 0) -> None:
        """Begin to read what ``draw`` will need if it gets the same arguments.

        Another draw reads for itself. An error waits for the draw that meets it. At most two
        pairs are kept: of the draw that comes next and of the one after it.
        """
        drawn = self._drawn(generator, phase)
        reading = self._reader.submit(self.snapshots, *drawn, like)
        self._ahead = [*self._ahead[-1:], (drawn, reading)]

    def _drawn(self, generator: torch.Generator, phase: int) -> tuple[int, list[int]]:
        """An expert and the start epochs, one or one for each side."""
        first, beyond = self.options.start_ranges()[phase]
        expert = int(torch.randint(self.count, (), generator=generator))
        epochs = [int(torch.randint(first, beyond, (), generator=generator))]
        if self.options.starts == "independent":
            epochs.append(int(torch.randint(first, beyond, (), generator=generator)))
        return expert, epochs

    def snapshots(self, expert: int, epochs: Sequence[int], like: Tensor) -> tuple[Tensor, Tensor]:
        """θ₀ and θ* of one epoch, or of one for each side."""
        runs = [(epoch, epoch + self.options.expert_epochs) for epoch in epochs]
        found = [_moved(self.experts.snapshots(expert, run), like) for run in runs]
        if len(found) == 1:
            start, target = found[0]
        else:
            image, text = found
            images = self.sides[0]
            start, target = torch.cat([image[:, :images], text[:, images:]], 1)
        return start, target


def _moved(found: Tensor, like: Tensor) -> Tensor:
    """On the device and of the type of another; to a GPU without waiting for it."""
    if like.is_cuda:
        return found.pin_memory().to(like, non_blocking=True)
    return found.to(like)
