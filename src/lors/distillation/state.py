"""The state of a distillation: everything that continuing it needs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lors.config import DistillConfig
from lors.distillation.optimizer import make_optimizer
from lors.sets.synthetic import SyntheticPairs

__all__ = ["State"]


@dataclass
class State:
    """What has been learned so far, and what the next iteration depends on.

    Args:
        synthetic: the pairs being learned.
        config: the outer loop's settings.
        seed: draws experts, starts and batches.
        together: whether the ranks work on each trajectory together; if not, they divide them.
        iteration: how many are done.
        best: the set with the best validation recall so far; empty before the first evaluation.
        best_recall: its recall.
        best_iteration: after which that was.
        slowed: how often the rate of each part was halved.
        average: the running average of the set; empty without ``averaging``.

    The optimiser (``optimizer``) and the state of the matcher for each trajectory
    (``matcher_states``) begin empty.

    >>> state = State(SyntheticPairs(torch.zeros(3, 2), torch.ones(3, 2)), DistillConfig(), seed=0)
    >>> state.iteration, state.trajectories, state.best_recall
    (0, 1, None)
    """

    synthetic: SyntheticPairs
    config: DistillConfig
    seed: int
    together: bool = False
    iteration: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)
    best_recall: float | None = None
    best_iteration: int = 0
    slowed: dict[str, int] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)
    optimizer: torch.optim.Optimizer = field(init=False)
    matcher_states: list[dict[str, Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = make_optimizer(self.synthetic, self.config)
        self.matcher_states = [{} for _ in range(self.trajectories)]

    @property
    def trajectories(self) -> int:
        """How many trajectories an iteration averages over."""
        return self.config.trajectories or 1

    def kept(self) -> SyntheticPairs:
        """The set that is evaluated and kept: the one being learned, or its average."""
        if not self.average:
            return self.synthetic
        pairs = copy.deepcopy(self.synthetic)
        pairs.load_state_dict(self.average)
        return pairs

    def keep_if_best(self, recall: float) -> None:
        """Remember the set as it would be kept now if its validation recall is the best so far."""
        if self.best_recall is None or recall > self.best_recall:
            self.best_recall, self.best_iteration = recall, self.iteration
            kept = self.average or self.synthetic.state_dict()
            self.best = {k: t.detach().cpu().clone() for k, t in kept.items()}

    def ended_early(self) -> bool:
        """Whether validation recall has not risen for too long, and iterations are left."""
        patience = self.config.patience * self.config.evaluate_every
        waited = self.iteration - self.best_iteration
        return 0 < patience <= waited and self.iteration < self.config.iterations

    def slow_down(self, part: str) -> None:
        """Halve the rate of a part that made the numbers non-finite; of the inner rates, both."""
        self.slowed[part] = self.slowed.get(part, 0) + 1
        if part == "rates":
            self.synthetic.rates.data.mul_(0.5)
            self.synthetic.clamp_rates()
