"""Where an inner run starts and what it should reach: drawn from the experts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import torch
from torch import Tensor

from lors.config import ExpertsConfig
from lors.config.matchers import TrajectoryOptions
from lors.encoders import FlatModel
from lors.experts import TrajectoryStore
from lors.matching.shortcut import Shortcuts
from lors.system.transfers import moved

__all__ = ["Starts", "Trajectories", "movement_ratio", "paced_ranges"]


Drawn = tuple[int, list[int]]
"""An expert, and its start epochs."""


class Trajectories(Protocol):
    """Experts as they are, or made straight."""

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)"""
        ...


class Starts:
    """Draws θ₀ = expert[s] and θ* = expert[s + k].

    With ``matching.starts=independent`` the image side and the text side of the same expert each
    have an epoch s of their own, so that a set meets sides that are unequally far. With ``paced``
    they also have ranges of their own: see ``paced_ranges``.

    What the next draw will need can be read while other work goes on: see ``prefetch``.

    Args:
        store: the trajectories to match.
        experts: how many there are, and of how many epochs.
        flat: the dual encoder, which tells the sides and the weight tensors of θ.
        options: how to match.
        budget: of the set, which says how many phases there are.
    """

    def __init__(
        self,
        store: TrajectoryStore,
        experts: ExpertsConfig,
        flat: FlatModel,
        options: TrajectoryOptions,
        budget: int,
    ) -> None:
        self.options, self.sides, self.count = options, flat.sides, experts.count
        phases = options.phases_within(budget)
        ends = [phase.last_epoch or experts.epochs for phase in phases] or [experts.epochs]
        self.experts: list[Trajectories] = [store] * len(ends)
        if options.shortcut:
            self.experts = [Shortcuts(store, end, flat.sizes) for end in ends]
        ratio = 1.0
        if options.starts == "paced":
            whole = (
                store.snapshots(each, range(experts.epochs + 1)) for each in range(experts.count)
            )
            ratio = movement_ratio(whole, flat.sides)
        bounds = [(phase.min_start_epoch, phase.max_start_epoch) for phase in phases]
        self.ranges = [
            paced_ranges(each, ratio, end - options.expert_epochs)
            for each, end in zip(bounds or options.start_ranges(), ends, strict=True)
        ]
        self._reader = ThreadPoolExecutor(1, "prefetch")
        self._ahead: list[tuple[tuple[Drawn, int], Future[tuple[Tensor, Tensor]]]] = []

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
            if expected == (drawn, phase):
                del self._ahead[place]
                return reading.result()
        return self.snapshots(*drawn, like, phase)

    def prefetch(self, generator: torch.Generator, like: Tensor, phase: int = 0) -> None:
        """Begin to read what ``draw`` will need if it gets the same arguments.

        Another draw reads for itself. An error waits for the draw that meets it. At most two
        pairs are kept: of the draw that comes next and of the one after it.
        """
        drawn = self._drawn(generator, phase)
        reading = self._reader.submit(self.snapshots, *drawn, like, phase)
        self._ahead = [*self._ahead[-1:], ((drawn, phase), reading)]

    def _drawn(self, generator: torch.Generator, phase: int) -> Drawn:
        """An expert and the start epochs, one or one for each side."""
        image, text = self.ranges[phase]
        expert = int(torch.randint(self.count, (), generator=generator))
        epochs = [int(torch.randint(*image, (), generator=generator))]
        if self.options.starts != "joint":
            epochs.append(int(torch.randint(*text, (), generator=generator)))
        return expert, epochs

    def snapshots(
        self, expert: int, epochs: Sequence[int], like: Tensor, phase: int = 0
    ) -> tuple[Tensor, Tensor]:
        """θ₀ and θ* of one epoch, or of one for each side."""
        runs = [(epoch, epoch + self.options.expert_epochs) for epoch in epochs]
        found = [moved(self.experts[phase].snapshots(expert, run), like) for run in runs]
        if len(found) == 1:
            start, target = found[0]
        else:
            image, text = found
            images = self.sides[0]
            start, target = torch.cat([image[:, :images], text[:, images:]], 1)
        return start, target


def movement_ratio(trajectories: Iterable[Tensor], sides: tuple[int, int]) -> float:
    """How far the text side moves in an epoch, where the image side moves by 1: the median.

    >>> thetas = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 5.0], [3.0, 9.0]])
    >>> movement_ratio([thetas], (1, 1))
    3.0

    Args:
        trajectories: of experts; every epoch of each counts. Shape of each: (T + 1, P)
        sides: how many of the numbers belong to the image and to the text side.
    """
    ratios = []
    for thetas in trajectories:
        image, text = (part.norm(dim=1) for part in thetas.diff(dim=0).split(list(sides), 1))
        moved = (image > 0) & (text > 0)
        ratios.append(text[moved] / image[moved])
    every = torch.cat(ratios) if ratios else torch.ones(0)
    return float(every.median()) if len(every) else 1.0


def paced_ranges(
    bounds: tuple[int, int], ratio: float, last: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The start epochs of the image side and of the text side.

    The side that moves farther in an epoch has the given range. The other needs as many times more
    epochs to come as far, so its range is as many times as long, and begins where that does.

    >>> paced_ranges((0, 2), ratio=2.5, last=9)
    ((0, 5), (0, 2))

    Args:
        bounds: the first start epoch and the one beyond the last.
        ratio: of movements, text to image; 1 leaves both ranges as they are.
        last: the last epoch from which a target can be reached.
    """
    first, beyond = bounds

    def longer(times: float) -> tuple[int, int]:
        return first, max(beyond, min(last + 1, first + round(times * (beyond - first))))

    return longer(max(1.0, ratio)), longer(max(1.0, 1 / ratio))
