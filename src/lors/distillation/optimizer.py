"""The optimiser of the outer loop, and the schedule of its learning rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from lors.config import DistillConfig
from lors.sets.synthetic import SyntheticPairs

__all__ = ["last_moves", "learning_rate", "make_optimizer", "set_learning_rates"]

BETA = 0.99
"""Adam's second beta: gradients change too fast for a longer memory."""


def make_optimizer(synthetic: SyntheticPairs, config: DistillConfig) -> torch.optim.Optimizer:
    """SGD or Adam over the parts that are learned, each a group with its name and its rate.

    The gradients of fixed parts are switched off.

    Args:
        synthetic: what is learned.
        config: which parts, at which rates, by which optimiser.

    >>> pairs = SyntheticPairs(torch.zeros(3, 2), torch.zeros(3, 2))
    >>> optimizer = make_optimizer(pairs, DistillConfig(fixed=("images",)))
    >>> [group["name"] for group in optimizer.param_groups]
    ['texts', 'rates']
    """
    groups = []
    for part, tensors in synthetic.parts().items():
        learned = part not in config.fixed
        for tensor in tensors:
            tensor.requires_grad_(learned)
        if learned and tensors:
            rate = getattr(config.learning_rates, part)
            groups.append({"params": tensors, "lr": rate, "name": part})
    if config.optimizer == "adam":
        return torch.optim.Adam(groups, betas=(config.momentum, BETA))
    return torch.optim.SGD(groups, momentum=config.momentum)


def learning_rate(config: DistillConfig, part: str, iteration: int, slowed: int = 0) -> float:
    """The outer learning rate of a part.

    Args:
        config: the rate of each part, and the schedule.
        part: of the synthetic pairs.
        iteration: counted from 0.
        slowed: how often the part was slowed down; each time halves its rate.

    >>> config = DistillConfig(iterations=10, learning_rates={"images": 2}, schedule="cosine")
    >>> [learning_rate(config, "images", iteration) for iteration in (0, 5, 10)]
    [2.0, 1.0, 0.0]
    """
    done = iteration / config.iterations
    share = (1 + math.cos(math.pi * done)) / 2 if config.schedule == "cosine" else 1.0
    rate: float = getattr(config.learning_rates, part)
    return share * rate * 0.5**slowed


def set_learning_rates(
    optimizer: torch.optim.Optimizer,
    config: DistillConfig,
    iteration: int,
    slowed: Mapping[str, int],
) -> None:
    """Give every part the learning rate of this iteration.

    Args:
        optimizer: as ``make_optimizer`` makes it.
        config: see ``learning_rate``.
        iteration: counted from 0.
        slowed: how often each part was slowed down; those that never were may be missing.
    """
    for group in optimizer.param_groups:
        part = group["name"]
        group["lr"] = learning_rate(config, part, iteration, slowed.get(part, 0))


def last_moves(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """How far each part moved in the last step, relative to its length after it."""
    return {str(group["name"]): _last_move(optimizer, group) for group in optimizer.param_groups}


def _last_move(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> float:
    states = [optimizer.state.get(tensor, {}) for tensor in group["params"]]
    steps = [state["momentum_buffer"] for state in states if "momentum_buffer" in state]
    steps += [
        state["exp_avg"] / state["exp_avg_sq"].sqrt().clamp(min=1e-8)
        for state in states
        if "exp_avg" in state
    ]
    length = math.sqrt(sum(step.double().square().sum().item() for step in steps))
    size = math.sqrt(sum(t.detach().double().square().sum().item() for t in group["params"]))
    return group["lr"] * length / max(size, 1e-12)
