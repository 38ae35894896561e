"""Which way to second derivatives fits a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from lors.matching.second_order import (
    BatchLoss,
    Derivative,
    Product,
    afresh,
    central,
    double,
    forward,
    kept,
    one_sided,
)
from lors.training import Batch

__all__ = ["fitting_derivative", "fitting_one_sided", "kept_bytes", "relative_error"]

TOLERANCE = 0.01
"""Of differences: far below what changes from one drawn start to the next."""

CENTRAL_STEPS = (1e-4, 3e-5, 1e-5)
ONE_SIDED_STEPS = (3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
"""Of differences, as tried: the more θ's numbers differ in size, the shorter."""

LARGE = 1_000_000
"""Parameters from which forward mode is faster than double backward, measured on a CPU."""


def relative_error(
    derivative: Derivative, loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> float:
    """How far a way is from ``double``, relative to the length; the worst of θ and all tensors.

    What is zero has no length and does not count.
    """
    exact = double(loss, theta, batch, direction, True)
    return _error(derivative(loss, theta, batch, True).product(direction), exact)


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
    one-sided ones, with kinks left out where there are none to keep to, then central ones. Else the
    first graphs are kept, if they fit into memory. Else, where no derivative in θ is asked for,
    forward mode for networks large enough to hide what it costs per operation, if it knows all
    operations; else double backward. ``python -m benchmarks.speed meta-gradient`` times them all.

    Args:
        loss: ℓ(θ, batch).
        theta: where an inner run may start.
        batch: a typical one; all its tensors require gradients.
        direction: such as λ may have.
        with_theta: whether derivatives in θ will be asked for.
        graphs: the bytes that memory has for each step's graph of a batch of this size.
    """
    way, error = fitting_one_sided(loss, theta, batch, direction)
    if error < TOLERANCE:
        return "one-sided", way
    ways = [afresh(partial(central, step=step)) for step in CENTRAL_STEPS]
    way, error = _best(ways, loss, theta, batch, direction)
    if error < TOLERANCE:
        return "central", way
    if graphs and kept_bytes(loss, theta, batch) <= graphs:
        return "kept", kept
    if with_theta or len(theta) < LARGE:
        return "double", afresh(double)
    try:
        forward(loss, theta, batch, direction, False)
    except torch.cuda.OutOfMemoryError:
        raise
    except (NotImplementedError, RuntimeError):
        return "double", afresh(double)
    return "forward", afresh(forward)


def fitting_one_sided(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> tuple[Derivative, float]:
    """One-sided differences with the best of a few steps, and their error.

    Kinks are left out where that is right, too. Arguments are those of ``fitting_derivative``.
    """
    for kinks in (False, True):
        ways = [partial(one_sided, step=step, kinks=kinks) for step in ONE_SIDED_STEPS]
        way, error = _best(ways, loss, theta, batch, direction)
        if error < TOLERANCE:
            break
    return way, error


def _best(
    ways: Sequence[Derivative], loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> tuple[Derivative, float]:
    """The way with the least error, and that."""
    exact = double(loss, theta, batch, direction, True)
    products = (way(loss, theta, batch, True).product(direction) for way in ways)
    error, place = min((_error(product, exact), i) for i, product in enumerate(products))
    return ways[place], error


def _error(ours: Product, exact: Product) -> float:
    errors = [
        (a - b).norm() / b.norm()
        for a, b in zip((ours.theta, *ours.batch), (exact.theta, *exact.batch), strict=True)
        if a is not None and b is not None and b.any()
    ]
    return torch.stack(errors).max().item() if errors else 0.0
