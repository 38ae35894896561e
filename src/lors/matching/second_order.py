"""∇⟨d, g⟩, the derivative of a gradient's product with a direction: five ways to the same.

g = ∇θ ℓ(θ, batch), and the derivative is taken in θ and in the batch. Second derivatives commute,
so it is also the derivative of ∇ℓ along d, which is what all but ``double`` and ``kept`` compute.

An inner run first goes forward, step by step, and learns d only at its end. So a way has two parts:
g now, and the derivative later. What the second part can use of the first need not be computed
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lors.matching.kinks import Branches, noted, taken
from lors.training import Batch

__all__ = [
    "DERIVATIVES",
    "BatchLoss",
    "Derivative",
    "Product",
    "Visit",
    "afresh",
    "central",
    "double",
    "first_pass",
    "forward",
    "kept",
    "one_sided",
]

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


class Visit(NamedTuple):
    """One step of an inner run.

    Args:
        gradient: g at θ. Shape: (P,)
        product: the derivative of ⟨d, g⟩ there, for a d that is known later; it may write to d.
            Shape of d: (P,)
    """

    gradient: Tensor
    product: Callable[[Tensor], Product]


class Derivative(Protocol):
    """A way to compute it."""

    def __call__(self, loss: BatchLoss, theta: Tensor, batch: Batch, with_theta: bool) -> Visit:
        """Compute g, and make ready for the derivative of ⟨d, g⟩.

        Args:
            loss: ℓ(θ, batch).
            theta: Shape: (P,)
            batch: gradients are computed for those tensors that require them.
            with_theta: whether to give the derivative in θ, and g with it.
        """
        ...


def afresh(product: Callable[[BatchLoss, Tensor, Batch, Tensor, bool], Product]) -> Derivative:
    """A way that uses nothing of the first part: ``double``, ``forward`` or ``central``."""

    def visit(loss: BatchLoss, theta: Tensor, batch: Batch, with_theta: bool) -> Visit:
        data = Batch(*(tensor.detach() for tensor in batch))
        (g,) = _gradients(loss, theta, data, [])
        return Visit(g, lambda d: product(loss, theta, batch, d, with_theta))

    return visit


def one_sided(
    loss: BatchLoss,
    theta: Tensor,
    batch: Batch,
    with_theta: bool,
    step: float = 1e-5,
    kinks: bool = True,
) -> Visit:
    """(∇ℓ(θ + εd) - ∇ℓ(θ)) / ε, of which the second gradient comes with g.

    Both passes are plain, so it costs 1.7 passes without θ and 2 with it. Right to two or three
    digits in single precision.

    Args:
        loss: ℓ(θ, batch).
        theta: Shape: (P,)
        batch: gradients are computed for those tensors that require them.
        with_theta: whether to give the derivative in θ, and g with it.
        step: relative to the length of θ, and for single precision.
        kinks: whether the second pass takes the branches of the first at ReLUs and the like.
            Without that, it is only for smooth networks.
    """
    g, product = first_pass(loss, theta, batch, with_theta, kinks)
    return Visit(g, lambda direction: product(direction, step))


def first_pass(
    loss: BatchLoss, theta: Tensor, batch: Batch, with_theta: bool, kinks: bool = True
) -> tuple[Tensor, Callable[[Tensor, float], Product]]:
    """The first part of ``one_sided``: g, and what gives the derivative for any step."""
    theta, data = theta.detach(), batch.leaves()
    wanted = [tensor for tensor in data if tensor.requires_grad]
    branches: Branches = []
    g, *here = _gradients(loss, theta, data, wanted, mode=noted(branches) if kinks else None)
    below = [g, *here] if with_theta else here

    def product(direction: Tensor, step: float) -> Product:
        if not wanted and not with_theta:
            return Product(data.gradients([]), None, None)
        epsilon = _epsilon(step, 1 / 2, theta, direction)
        place = torch.addcmul(theta, direction, epsilon, out=direction)
        there = _gradients(
            loss, place, data, wanted, with_theta, taken(branches) if kinks else None
        )
        found = [a.sub_(b).div_(epsilon) for a, b in zip(there, below, strict=True)]
        in_theta = found.pop(0) if with_theta else None
        return Product(data.gradients(found), in_theta, below[0] if with_theta else None)

    return g, product


def kept(loss: BatchLoss, theta: Tensor, batch: Batch, with_theta: bool) -> Visit:
    """Backward through the backward pass of the first part, whose graph is kept until then.

    Exact, and knows every operation with two derivatives; memory grows with t.
    """
    theta, data = theta.detach().requires_grad_(), batch.leaves()
    wanted = [tensor for tensor in data if tensor.requires_grad]
    if not wanted and not with_theta:
        return afresh(double)(loss, theta, batch, with_theta)
    (g,) = torch.autograd.grad(loss(theta, data), theta, create_graph=True)

    def product(direction: Tensor) -> Product:
        inputs = [theta, *wanted] if with_theta else wanted
        found = list(torch.autograd.grad(g, inputs, direction, materialize_grads=True))
        in_theta = found.pop(0) if with_theta else None
        return Product(data.gradients(found), in_theta, g.detach() if with_theta else None)

    return Visit(g.detach(), product)


def double(
    loss: BatchLoss, theta: Tensor, batch: Batch, direction: Tensor, with_theta: bool
) -> Product:
    """Backward through a backward pass. Exact, and knows every operation with two derivatives."""
    if not with_theta and not any(tensor.requires_grad for tensor in batch):
        return Product(batch.gradients([]), None, None)
    return kept(loss, theta, batch, with_theta).product(direction)


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

    The step is relative to the length of θ, and for single precision.
    """
    theta, data = theta.detach(), batch.leaves()
    epsilon = _epsilon(step, 1 / 3, theta, direction)
    wanted = [tensor for tensor in data if tensor.requires_grad]
    if not wanted and not with_theta:
        return Product(data.gradients([]), None, None)
    above, below = (
        _gradients(loss, theta.addcmul(direction, epsilon, value=sign), data, wanted, with_theta)
        for sign in (1, -1)
    )
    g = (above[0] + below[0]).div_(2) if with_theta else None
    found = [a.sub_(b).div_(2 * epsilon) for a, b in zip(above, below, strict=True)]
    in_theta = found.pop(0) if with_theta else None
    return Product(data.gradients(found), in_theta, g)


def _gradients(
    loss: BatchLoss,
    theta: Tensor,
    data: Batch,
    wanted: Sequence[Tensor],
    with_theta: bool = True,
    mode: AbstractContextManager[None] | None = None,
) -> tuple[Tensor, ...]:
    """∇ℓ in θ, if asked for, and in what is wanted of the data; the mode is for the way forward."""
    theta = theta.detach().requires_grad_(with_theta)
    inputs = [theta, *wanted] if with_theta else wanted
    with mode or nullcontext():
        value = loss(theta, data)
    return torch.autograd.grad(value, inputs, materialize_grads=True)


def _epsilon(step: float, power: float, theta: Tensor, direction: Tensor) -> Tensor:
    """The step of a difference along d; what digits other than single precision change in it."""
    size = direction.norm().clamp(min=torch.finfo(theta.dtype).tiny)
    digits = torch.finfo(theta.dtype).eps / torch.finfo(torch.float32).eps
    return step * digits**power * theta.norm() / size


DERIVATIVES: dict[str, Derivative] = {
    "double": afresh(double),
    "forward": afresh(forward),
    "central": afresh(central),
    "one-sided": one_sided,
    "kept": kept,
}
