"""The optimiser of the outer loop, and the schedule of its learning rates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lors.config import DistillConfig
from lors.config.types import TINY
from lors.sets.synthetic import SyntheticPairs

__all__ = ["clip_gradients", "last_moves", "make_optimizer", "set_learning_rates", "take_step"]

BETA = 0.99
"""Adam's second beta: gradients change too fast for a longer memory."""

SHARES: Mapping[str, float] = {"images": 0.01, "texts": 0.02, "similarity": 0.003, "rates": 0.05}
"""With SGD, ``auto`` is this share of a part's squared length at the start."""
LARGEST = 0.02
"""And a gradient is clipped that would move the part by more than this share of its length."""
ADAM_SHARE = 0.02
"""With Adam, ``auto`` is this share of the root mean square of a part's numbers at the start, and
of each of the two inner rates, which may be as unlike as 0.01 and 1, as it is."""


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
            steps = _by_length(part, tensors, config.optimizer) if rate == "auto" else {"lr": rate}
            groups.append({"params": tensors, "name": part, **steps})
    for group in groups:
        group["initial_lr"] = group["lr"]
    if config.optimizer == "adam":
        return torch.optim.Adam(groups, betas=(config.momentum, BETA))
    return torch.optim.SGD(groups, momentum=config.momentum)


def _by_length(part: str, tensors: Sequence[Tensor], optimizer: str) -> dict[str, Any]:
    """The rate that ``auto`` stands for, and with SGD the length that gradients are clipped to.

    An objective that does not depend on the scale of a part x has a gradient of length c / ‖x‖,
    where c says how much relative changes of x matter. At a rate of share · ‖x‖², a step of SGD
    moves x by share · c of its length, whatever its scale and its number of dimensions. Adam moves
    every number by its rate, so there the rate is a share of their root mean square.
    """
    squares = sum(tensor.detach().double().square().sum().item() for tensor in tensors)
    if optimizer == "adam" and part == "rates":
        return {"lr": ADAM_SHARE, "relative": True}
    if optimizer == "adam":
        numbers = sum(tensor.numel() for tensor in tensors)
        return {"lr": max(TINY, ADAM_SHARE * math.sqrt(squares / numbers))}
    rate = max(TINY, SHARES[part] * squares)
    return {"lr": rate, "clipped_to": LARGEST * math.sqrt(squares) / rate}


def clip_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Shorten the gradients of parts whose rate is ``auto`` where a step would be too long."""
    for group in optimizer.param_groups:
        if longest := group.get("clipped_to"):
            torch.nn.utils.clip_grad_norm_(group["params"], longest)


@torch.no_grad()
def take_step(optimizer: torch.optim.Optimizer) -> None:
    """One step, in which parts that are ``relative`` are multiplied instead of added to.

    >>> pairs = SyntheticPairs(torch.ones(3, 2), torch.ones(3, 2), None, (0.01, 1.0))
    >>> config = DistillConfig(optimizer="adam", learning_rates={"rates": "auto"})
    >>> optimizer = make_optimizer(pairs, config)
    >>> pairs.rates.grad = torch.tensor([1.0, -1e-6])
    >>> take_step(optimizer)
    >>> [round(rate, 4) for rate in pairs.rates.tolist()]
    [0.0098, 1.02]
    """
    relative = [
        p for group in optimizer.param_groups if group.get("relative") for p in group["params"]
    ]
    before = [parameter.clone() for parameter in relative]
    for parameter in relative:  # the gradient in the logarithm
        if parameter.grad is not None:
            parameter.grad.mul_(parameter)
    optimizer.step()
    for parameter, old in zip(relative, before, strict=True):
        parameter.copy_(old * torch.exp(parameter - old))


def set_learning_rates(
    optimizer: torch.optim.Optimizer,
    config: DistillConfig,
    iteration: int,
    slowed: Mapping[str, int],
) -> None:
    """Give every part the learning rate of this iteration.

    Args:
        optimizer: as ``make_optimizer`` makes it.
        config: the schedule.
        iteration: counted from 0.
        slowed: how often each part was slowed down, which halves its rate; those that never were
            may be missing.

    >>> config = DistillConfig(iterations=10, learning_rates={"images": 2}, schedule="cosine")
    >>> optimizer = make_optimizer(SyntheticPairs(torch.ones(3, 2), torch.ones(3, 2)), config)
    >>> set_learning_rates(optimizer, config, 5, {})
    >>> optimizer.param_groups[0]["lr"]
    1.0
    """
    done = iteration / config.iterations
    share = (1 + math.cos(math.pi * done)) / 2 if config.schedule == "cosine" else 1.0
    for group in optimizer.param_groups:
        group["lr"] = share * group["initial_lr"] * 0.5 ** slowed.get(group["name"], 0)


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
