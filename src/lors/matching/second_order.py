"""∇⟨d, g⟩, the derivative of a gradient's product with a direction: three ways to the same.

g = ∇θ ℓ(θ, batch), and the derivative is taken in θ and in the batch. Second derivatives commute,
so it is also the derivative of ∇ℓ along d, which is what the second and the third way compute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lors.training import Batch

__all__ = [
    "DERIVATIVES",
    "Derivative",
    "Product",
    "central",
    "double",
    "fitting_derivative",
    "forward",
    "relative_error",
]

TOLERANCE = 0.01
"""Of central differences: far below what changes from one drawn start to the next."""

STEPS = (1e-4, 3e-5, 1e-5)
"""Of central differences, as tried: the more θ's numbers differ in size, the shorter."""

LARGE = 1_000_000
"""Parameters from which forward mode is faster than double backward, measured on a CPU."""

BatchLoss = Callable[[Tensor, Batch], Tensor]


class Product(NamedTuple):
    """The derivative of ⟨d, g⟩.

    Args:
        batch: in each tensor of the batch; zero where none was required.
        theta: in θ, if asked for. Shape: (P,)
        gradient: g itself, if that in θ was asked for. Shape: (P,)
    """

    batch: Batch
    theta: Tensor | None
    gradient: Tensor | None


class Derivative(Protocol):
    """A way to compute it."""

    def __call__(
        self, loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, with_theta: bool
    ) -> Product:
        """The derivative of ⟨d, g⟩ at θ.

        Args:
            loss: ℓ(θ, batch).
            theta: Shape: (P,)
            batch: gradients are computed for those tensors that require them.
            direction: d. Shape: (P,)
            with_theta: whether to give the derivative in θ, and g.
        """
        ...


def double(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, with_theta: bool
) -> Product:
    """Backward through a backward pass. Exact, and knows every operation with two derivatives."""
    theta, data = theta.detach().requires_grad_(), batch.leaves()
    wanted = [tensor for tensor in data if tensor.requires_grad]
    if not wanted and not with_theta:
        return Product(data.gradients([]), None, None)
    (g,) = torch.autograd.grad(loss(theta, data), theta, create_graph=True)
    inputs = [theta, *wanted] if with_theta else wanted
    found = list(torch.autograd.grad(g, inputs, direction, materialize_grads=True))
    in_theta = found.pop(0) if with_theta else None
    return Product(data.gradients(found), in_theta, g.detach() if with_theta else None)


def forward(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, with_theta: bool
) -> Product:
    """Forward mode over a backward pass. Exact, and no graph of a graph is kept.

    Without θ the gradients of the weights, a third of a pass, are never computed.
    """
    places = [i for i, tensor in enumerate(batch) if tensor.requires_grad]
    arguments = (*([0] if with_theta else []), *(1 + place for place in places))
    if not arguments:
        return Product(batch.gradients([]), None, None)

    def gradients(theta: Tensor) -> tuple[Tensor, ...]:
        data = (tensor.detach() for tensor in batch)
        return torch.func.grad(lambda theta, *data: loss(theta, Batch(*data)), arguments)(
            theta, *data
        )

    values, slopes = torch.func.jvp(gradients, (theta.detach(),), (direction,))  # type: ignore[misc]
    found = [slope.detach() for slope in slopes]
    in_theta = found.pop(0) if with_theta else None
    return Product(batch.gradients(found), in_theta, values[0].detach() if with_theta else None)


def central(
    loss: BatchLoss,
    theta: Tensor,
    batch: Batch,
    direction: Tensor,
    with_theta: bool,
    step: float = 1e-4,
) -> Product:
    """(∇ℓ(θ + εd) - ∇ℓ(θ - εd)) / 2ε: two plain backward passes, at the memory of one.

    Right to about four digits in single precision if the network is smooth. Nonsense if it has
    kinks (ReLU), where the two passes differ by a jump. ``relative_error`` tells.

    The step is relative to the length of θ, and for single precision; with other digits it changes
    as their third root does.
    """
    theta, data = theta.detach(), batch.leaves()
    size = direction.norm().clamp(min=torch.finfo(theta.dtype).tiny)
    digits = torch.finfo(theta.dtype).eps / torch.finfo(torch.float32).eps
    epsilon = step * digits ** (1 / 3) * theta.norm() / size
    wanted = [tensor for tensor in data if tensor.requires_grad]
    if not wanted and not with_theta:
        return Product(data.gradients([]), None, None)

    def gradients(theta: Tensor) -> tuple[Tensor, ...]:
        theta = theta.detach().requires_grad_(with_theta)
        inputs = [theta, *wanted] if with_theta else wanted
        return torch.autograd.grad(loss(theta, data), inputs, materialize_grads=True)

    above, below = gradients(theta + epsilon * direction), gradients(theta - epsilon * direction)
    g = (above[0] + below[0]).div_(2) if with_theta else None
    found = [a.sub_(b).div_(2 * epsilon) for a, b in zip(above, below, strict=True)]
    in_theta = found.pop(0) if with_theta else None
    return Product(data.gradients(found), in_theta, g)


def relative_error(
    derivative: Derivative, loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor
) -> float:
    """How far a way is from ``double``, relative to the length; the worst of θ and all tensors.

    What is zero has no length and does not count.
    """
    ours, exact = (way(loss, theta, batch, direction, True) for way in (derivative, double))
    errors = [
        (a - b).norm() / b.norm()
        for a, b in zip((ours.theta, *ours.batch), (exact.theta, *exact.batch), strict=True)
        if a is not None and b is not None and b.any()
    ]
    return torch.stack(errors).max().item() if errors else 0.0


def fitting_derivative(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, with_theta: bool
) -> tuple[str, Derivative, str]:
    """The cheapest way that is right for a network: its name, the way, and why.

    Decided by numbers and sizes alone, never by the clock, so that a seed gives the same bits on a
    busy machine: central differences, the cheapest wherever they were measured, if a trial shows
    that they are right; else, where no derivative in θ is asked for, forward mode for networks
    large enough to hide what it costs per operation, if it knows all operations; else double
    backward. ``python -m benchmarks.speed meta-gradient`` times all three.

    Args:
        loss: ℓ(θ, batch).
        theta: where an inner run may start.
        batch: a typical one; all its tensors require gradients.
        direction: such as λ may have.
        with_theta: whether derivatives in θ will be asked for.
    """
    ways = [partial(central, step=step) for step in STEPS]
    errors = [relative_error(way, loss, theta, batch, direction) for way in ways]
    error, way = min(zip(errors, ways, strict=True), key=lambda tried: tried[0])
    if error < TOLERANCE:
        return "central", way, f"their relative error is {error:.1e} here"
    kinks = f"central differences are off by {error:.1e}"
    if with_theta or len(theta) < LARGE:
        return "double", double, kinks
    try:
        forward(loss, theta, batch, direction, False)
    except torch.cuda.OutOfMemoryError:
        raise
    except (NotImplementedError, RuntimeError):
        return "double", double, f"{kinks}, and forward mode does not know all operations"
    return "forward", forward, kinks


DERIVATIVES: dict[str, Derivative] = {"double": double, "forward": forward, "central": central}
