"""Which way to second derivatives fits a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lors.matching.kinks import Branches, BranchesDifferError, has_kinks, noted, taken
from lors.matching.second_order import (
    BatchLoss,
    Derivative,
    Product,
    afresh,
    central,
    double,
    first_pass,
    forward,
    kept,
    one_sided,
)
from lors.setting import Setting
from lors.system.seeding import generator
from lors.training import Batch

__all__ = [
    "TOLERANCE",
    "fitting_derivative",
    "fitting_one_sided",
    "kept_bytes",
    "relative_error",
    "trial_batch",
    "trial_derivative",
]

TOLERANCE = 0.01
"""Of differences: far below what changes from one drawn start to the next."""

STEPS = (3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
"""Of differences, as tried: the more θ's numbers differ in size, the shorter."""

TRIAL = 8
"""Pairs on which second derivatives are tried: fewer than a step has, so that memory suffices."""

LARGE = 1_000_000
"""Parameters from which forward mode is faster than double backward, measured on a CPU."""


def trial_batch(setting: Setting, most: int | None = None) -> Batch:
    """A few real pairs, the same for a seed of experts, of which gradients are asked.

    Args:
        setting: the real pairs.
        most: no more than so many.
    """
    draw = generator(setting.config.experts.seed, "derivative")
    inputs, texts = setting.real_batch(draw, None)
    m = min(most or TRIAL, len(inputs), TRIAL)
    batch = Batch(inputs[:m], texts[:m], torch.eye(m).to(inputs))
    return Batch(*(t.requires_grad_(t.is_floating_point()) for t in batch))  # ids: scope all


def trial_derivative(
    setting: Setting, loss: BatchLoss, theta: Tensor, direction: Tensor, with_theta: bool
) -> Derivative:
    """The way that fits a network, tried on real pairs: see ``fitting_derivative``."""
    return fitting_derivative(loss, theta, trial_batch(setting), direction, with_theta)[1]


def relative_error(
    derivative: Derivative, loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> float:
    """How far a way is from ``double``, relative to the length; the worst of θ and all tensors.

    What is zero has no length and does not count.
    """
    exact = double(loss, theta, batch, direction, True)
    return _error(derivative(loss, theta, batch, True).product(direction.clone()), exact)


def kept_bytes(loss: BatchLoss, theta: Tensor, batch: Batch) -> int:
    """The bytes that the graph of one step takes, as ``kept`` keeps it, besides θ."""
    sizes: dict[int, int] = {}

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        kept(loss, theta, batch, True)
    sizes.pop(theta.untyped_storage().data_ptr(), None)
    return sum(sizes.values())


def fitting_derivative(
    loss: BatchLoss,
    theta: Tensor,
    batch: Batch,
    direction: Tensor,
    with_theta: bool,
    graphs: float = 0,
) -> tuple[str, Derivative]:
    """The cheapest way that is right for a network, and its name.

    Decided by numbers and sizes alone, never by the clock, so that a seed gives the same bits on a
    busy machine. First come differences, if a trial shows that one of a few steps is right:
    one-sided ones, then, for smooth networks, central ones. Else the first graphs are kept, if they
    fit into memory. Else, where no derivative in θ is asked for, forward mode for networks large
    enough to hide what it costs per operation, if it knows all operations; else double backward.

    The trial costs at most 22 passes of this batch, mostly 9.
    ``python -m benchmarks.speed meta-gradient`` times all ways.

    Args:
        loss: ℓ(θ, batch).
        theta: where an inner run may start.
        batch: a typical one; all its tensors require gradients.
        direction: such as λ may have.
        with_theta: whether derivatives in θ will be asked for.
        graphs: the bytes that memory has for each step's graph of a batch of this size.
    """
    exact = _exact(loss, theta, batch, direction)
    way, error, kinks = _one_sided(loss, theta, batch, direction, exact)
    if error < TOLERANCE:
        return "one-sided", way
    if not kinks:

        def central_error(step: float) -> float:
            return _error(central(loss, theta, batch, direction, True, step), exact)

        step, error = _least(central_error)
        if error < TOLERANCE:
            return "central", afresh(partial(central, step=step))
    if graphs and kept_bytes(loss, theta, batch) <= graphs:
        return "kept", kept
    if with_theta or len(theta) < LARGE:
        return "double", afresh(double)
    try:
        forward(loss, theta, batch, direction, False)
    except torch.OutOfMemoryError:
        raise
    except (NotImplementedError, RuntimeError):
        return "double", afresh(double)
    return "forward", afresh(forward)


def fitting_one_sided(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> tuple[Derivative, float]:
    """One-sided differences with the best of a few steps, and their error.

    Arguments are those of ``fitting_derivative``.
    """
    exact = _exact(loss, theta, batch, direction)
    return _one_sided(loss, theta, batch, direction, exact)[:2]


def _exact(loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor) -> Product:
    """The derivative that a trial compares with.

    Some operations with kinks have only one derivative in torch (hardsigmoid); their branches have
    all.
    """
    try:
        return double(loss, theta, batch, direction, True)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        branches: Branches = []
        with torch.no_grad(), noted(branches):
            loss(theta, batch)

        def smooth(theta: Tensor, batch: Batch) -> Tensor:
            with taken(branches):
                return loss(theta, batch)

        return double(smooth, theta, batch, direction, True)


def _one_sided(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, exact: Product
) -> tuple[Derivative, float, bool]:
    """The same, and whether the network has kinks: without them, nothing need be noted."""
    leaf, data = theta.detach().requires_grad_(), Batch(*(t.detach() for t in batch))
    kinks = has_kinks(lambda: loss(leaf, data))
    _, product = first_pass(loss, theta, batch, True, kinks)

    def error(step: float) -> float:
        try:
            return _error(product(direction.clone(), step), exact)
        except BranchesDifferError:
            return math.inf

    step, least = _least(error)
    return partial(one_sided, step=step, kinks=kinks), least, kinks


def _least(error: Callable[[float], float]) -> tuple[float, float]:
    """The step of the least error, and that, which falls and then rises from long to short steps.

    >>> _least(lambda step: abs(step - 1e-5))
    (1e-05, 0.0)
    """
    middle = len(STEPS) // 2
    found = {middle: error(STEPS[middle])}
    for turn in (-1, 1):
        place = middle
        while 0 <= place + turn < len(STEPS):
            found[place + turn] = error(STEPS[place + turn])
            if not found[place + turn] < found[place]:
                break
            place += turn
        if place != middle:
            break
    best = min(found, key=lambda place: (_finite(found[place]), place))
    return STEPS[best], _finite(found[best])


def _finite(error: float) -> float:
    """Not a number is no fit."""
    return math.inf if math.isnan(error) else error


def _error(ours: Product, exact: Product) -> float:
    errors = [
        (a - b).norm() / b.norm()
        for a, b in zip((ours.theta, *ours.batch), (exact.theta, *exact.batch), strict=True)
        if a is not None and b is not None and b.any()
    ]
    return torch.stack(errors).max().item() if errors else 0.0
