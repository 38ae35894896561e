"""Meta-gradients: how the end of an inner training run depends on the data it was trained on.

θ_{i+1} = θ_i - η g_i with g_i = ∇θ ℓ(θ_i, batch_i), for t steps, then a loss of θ_t. Three ways to
its gradient with respect to the batches and the rates, behind one interface. They know nothing of
where batches come from: they return gradients on the batches, and autograd carries these on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lors.training import Batch

__all__ = ["META_GRADIENTS", "Inner", "MetaGradient", "exact", "tesla", "unrolled"]


@dataclass(frozen=True)
class Inner:
    """An inner training run.

    Args:
        loss: ℓ(θ, batch).
        theta: θ_0. Shape: (P,)
        batches: one per step; gradients are computed for those tensors that require them.
        rates: learning rates of the image side and the text side. Shape: (2,)
        sides: how many of θ's numbers belong to each side.
        objective: the loss of θ_t.
    """

    loss: Callable[[Tensor, Batch], Tensor]
    theta: Tensor
    batches: Sequence[Batch]
    rates: Tensor
    sides: tuple[int, int]
    objective: Callable[[Tensor], Tensor]

    def spread(self, rates: Tensor) -> Tensor:
        """η: the rate of each parameter. Shape: (2,) -> (P,)"""
        return torch.cat([rate.expand(n) for rate, n in zip(rates, self.sides, strict=True)])

    def gradient(self, theta: Tensor, batch: Batch, create_graph: bool = False) -> Tensor:
        """g = ∇θ ℓ(θ, batch)"""
        return torch.autograd.grad(self.loss(theta, batch), theta, create_graph=create_graph)[0]


@dataclass(frozen=True)
class MetaGradient:
    """The objective at θ_t and its gradients.

    Args:
        objective: the loss of θ_t. Shape: ()
        batches: the gradient of each tensor of each batch; zero where none was required.
        rates: Shape: (2,)
    """

    objective: Tensor
    batches: list[Batch]
    rates: Tensor


def unrolled(inner: Inner) -> MetaGradient:
    """Plain autograd through all steps. Memory grows with t; the reference for the others.

    Paper: `Dataset Distillation by Matching Training Trajectories
    <https://arxiv.org/abs/2203.11932>`_
    """
    leaves = [_leaves(batch) for batch in inner.batches]
    rates = inner.rates.detach().requires_grad_()
    theta = inner.theta.detach().requires_grad_()
    for batch in leaves:
        step = inner.spread(rates) * inner.gradient(theta, batch, create_graph=True)
        theta = theta - step
    objective = inner.objective(theta)
    wanted = [tensor for batch in leaves for tensor in batch if tensor.requires_grad]
    found = iter(torch.autograd.grad(objective, [rates, *wanted], materialize_grads=True))
    rate_gradient = next(found)
    gradients = [_place(batch, found) for batch in leaves]
    return MetaGradient(objective.detach(), gradients, rate_gradient)


def exact(inner: Inner) -> MetaGradient:
    """The same gradient by the adjoint recursion, at the memory of one step.

    λ = ∂objective/∂θ_t; then for i = t-1 … 0: the gradient of batch_i is -∇_batch⟨ηλ, g_i⟩, that
    of the rates gains -⟨λ, g_i⟩ on each side, and λ becomes λ - ∇θ⟨ηλ, g_i⟩. Only the θ_i are kept.
    """
    return _adjoint(inner, carry=True)


def tesla(inner: Inner) -> MetaGradient:
    """The adjoint recursion with λ frozen: later steps are taken not to depend on earlier ones.

    What TESLA and the published LoRS compute.

    Paper: `Scaling Up Dataset Distillation to ImageNet-1K with Constant Memory
    <https://arxiv.org/abs/2211.10586>`_
    """
    return _adjoint(inner, carry=False)


def _adjoint(inner: Inner, carry: bool) -> MetaGradient:
    eta = inner.spread(inner.rates.detach())
    thetas = [inner.theta.detach().requires_grad_()]
    for batch in inner.batches:
        data = Batch(*(tensor.detach() for tensor in batch))
        step = eta * inner.gradient(thetas[-1], data)
        thetas.append((thetas[-1] - step).detach().requires_grad_())
    end = thetas.pop()
    objective = inner.objective(end)
    (adjoint,) = torch.autograd.grad(objective, end)

    rate_gradient = torch.zeros_like(inner.rates)
    gradients = []
    for batch in reversed(inner.batches):
        theta, data = thetas.pop(), _leaves(batch)
        g = inner.gradient(theta, data, create_graph=True)
        wanted = [tensor for tensor in data if tensor.requires_grad]
        direction = -eta * adjoint
        found = iter(
            torch.autograd.grad(
                g, [*([theta] if carry else []), *wanted], direction, materialize_grads=True
            )
            if carry or wanted
            else ()
        )
        products = (adjoint * g.detach()).split(inner.sides)
        rate_gradient -= torch.stack([product.sum() for product in products])
        if carry:
            adjoint = adjoint + next(found)
        gradients.append(_place(data, found))
    return MetaGradient(objective.detach(), gradients[::-1], rate_gradient)


def _leaves(batch: Batch) -> Batch:
    return Batch(*(t.detach().requires_grad_(t.requires_grad) for t in batch))


def _place(batch: Batch, gradients: object) -> Batch:
    """Take the next gradient for each tensor that requires one, and zero for the others."""
    return Batch(*(next(gradients) if t.requires_grad else torch.zeros_like(t) for t in batch))  # type: ignore[call-overload]


META_GRADIENTS: dict[str, Callable[[Inner], MetaGradient]] = {
    "exact": exact,
    "tesla": tesla,
    "unrolled": unrolled,
}
