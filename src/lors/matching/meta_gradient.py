"""Meta-gradients: how the end of an inner training run depends on the data it was trained on.

v_{i+1} = μ v_i + g_i + δ θ_i and θ_{i+1} = θ_i - η_i v_{i+1} with g_i = ∇θ ℓ(θ_i, batch_i), for t
steps, then a loss of θ_t: SGD, plain where momentum μ and weight decay δ are 0. Three ways to the
gradient of that loss with respect to the batches and the rates, behind one interface. They know
nothing of where batches come from: they return gradients on the batches, and autograd carries these
on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lors.encoders.dropout import dropping
from lors.encoders.recompute import keeping
from lors.matching.second_order import Derivative, Product, afresh, double
from lors.system.transfers import mark_step
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
        derivative: how second derivatives are computed, except by ``unrolled``.
        of_rates: the loss of θ_t that is reported and that the rates follow, if it is another.
        dropout: seeds the masks of dropout, if there is any: each step has its own, and all passes
            of a step the same, so that the gradient is that of the run as it was.
        momentum: μ.
        weight_decay: δ.
        pace: what the rates are multiplied by at each step; default: always 1.
    """

    loss: Callable[[Tensor, Batch], Tensor]
    theta: Tensor
    batches: Sequence[Batch]
    rates: Tensor
    sides: tuple[int, int]
    objective: Callable[[Tensor], Tensor]
    derivative: Derivative = field(default_factory=lambda: afresh(double))
    of_rates: Callable[[Tensor], Tensor] | None = None
    dropout: int | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0
    pace: Sequence[float] | None = None

    def rates_at(self, step: int) -> Tensor:
        """η_i of the image side and the text side. Shape: (2,)"""
        return self.rates if self.pace is None else self.rates * self.pace[step]

    def plain(self) -> bool:
        """Whether a step is that of plain SGD."""
        return not self.momentum and not self.weight_decay

    def loss_of(self, step: int) -> Callable[[Tensor, Batch], Tensor]:
        """ℓ of a step, counted from 0."""
        if self.dropout is None:
            return self.loss
        seed = self.dropout

        def loss(theta: Tensor, batch: Batch) -> Tensor:
            with dropping(seed, step):
                return self.loss(theta, batch)

        return loss

    def spread(self, rates: Tensor) -> Tensor:
        """η: the rate of each parameter. Shape: (2,) -> (P,)"""
        return torch.cat([rate.expand(n) for rate, n in zip(rates, self.sides, strict=True)])

    def scale_(self, vector: Tensor, factors: Tensor) -> Tensor:
        """The vector itself, each side times its factor. Shapes: (P,), (2,) -> (P,)"""
        for part, factor in zip(vector.split(self.sides), factors, strict=True):
            part.mul_(factor)
        return vector

    def velocity(self, theta: Tensor, gradient: Tensor, before: Tensor | None) -> Tensor:
        """μv + g + δθ, where v is None before the first step. Shapes: (P,) each -> (P,)"""
        if self.plain():
            return gradient
        now = torch.add(gradient, theta, alpha=self.weight_decay)
        return now if before is None else now.add_(before, alpha=self.momentum)

    def stepped(self, theta: Tensor, velocity: Tensor, out: Tensor, step: int) -> Tensor:
        """θ - ηv, written to the third; it may be the second. Shapes: (P,) each -> (P,)"""
        vectors = (vector.split(self.sides) for vector in (theta, velocity, out))
        for part, slope, place, rate in zip(*vectors, self.rates_at(step).detach(), strict=True):
            torch.addcmul(part, slope, rate, value=-1, out=place)
        return out

    def dots(self, a: Tensor, b: Tensor) -> Tensor:
        """⟨a, b⟩ on each side. Shapes: (P,), (P,) -> (2,)"""
        parts = zip(a.split(self.sides), b.split(self.sides), strict=True)
        return torch.stack([torch.dot(first, second) for first, second in parts])

    def gradient(
        self, theta: Tensor, batch: Batch, create_graph: bool = False, step: int = 0
    ) -> Tensor:
        """g = ∇θ ℓ(θ, batch)"""
        with keeping() if create_graph else nullcontext():
            value = self.loss_of(step)(theta, batch)
        return torch.autograd.grad(value, theta, create_graph=create_graph)[0]


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
    if inner.of_rates is not None:
        return _apart(unrolled, inner)
    leaves = [batch.leaves() for batch in inner.batches]
    rates = inner.rates.detach().requires_grad_()
    theta, velocity = inner.theta.detach().requires_grad_(), torch.zeros_like(inner.theta)
    for i, batch in enumerate(leaves):
        g = inner.gradient(theta, batch, True, i)
        velocity = inner.momentum * velocity + g + inner.weight_decay * theta
        pace = 1.0 if inner.pace is None else inner.pace[i]
        theta = theta - pace * inner.spread(rates) * velocity
    objective = inner.objective(theta)
    wanted = [tensor for batch in leaves for tensor in batch if tensor.requires_grad]
    found = iter(torch.autograd.grad(objective, [rates, *wanted], materialize_grads=True))
    rate_gradient = next(found)
    gradients = [batch.gradients(found) for batch in leaves]
    return MetaGradient(objective.detach(), gradients, rate_gradient)


def exact(inner: Inner) -> MetaGradient:
    """The same gradient by the adjoint recursion, at the memory of one step.

    λ = ∂objective/∂θ_t and ν = 0; then for i = t-1 … 0: ν becomes ν - η_i λ, the derivative in
    v_{i+1}; the gradient of batch_i is ∇_batch⟨ν, g_i⟩, that of the rates gains -⟨λ, v_{i+1}⟩ on
    each side, λ becomes λ + δν + ∇θ⟨ν, g_i⟩, and ν becomes μν. Only the θ_i and, if there is
    momentum or weight decay, the v_i are kept.
    """
    if inner.of_rates is not None:
        return _apart(exact, inner)
    theta, velocities, products = _train(inner, with_theta=True)
    objective, adjoint = _end(inner, theta)
    del theta
    rates, gradients = torch.zeros_like(inner.rates), []
    behind, room = torch.zeros_like(adjoint), torch.empty_like(adjoint)
    for i in reversed(range(len(products))):
        pace = 1.0 if inner.pace is None else inner.pace[i]
        torch.add(behind, inner.scale_(room.copy_(adjoint), -inner.rates_at(i).detach()), out=room)
        if not inner.plain():
            rates -= pace * inner.dots(adjoint, velocities.pop())
            adjoint.add_(room, alpha=inner.weight_decay)
            torch.mul(room, inner.momentum, out=behind)
        found = products.pop()(room)
        assert found.gradient is not None
        assert found.theta is not None
        if inner.plain():
            rates -= pace * inner.dots(adjoint, found.gradient)
        adjoint += found.theta
        gradients.append(found.batch)
        mark_step(adjoint.device)
    return MetaGradient(objective, gradients[::-1], rates)


def tesla(inner: Inner) -> MetaGradient:
    """The adjoint recursion with λ frozen: later steps are taken not to depend on earlier ones.

    What TESLA and the published LoRS compute.

    Paper: `Scaling Up Dataset Distillation to ImageNet-1K with Constant Memory
    <https://arxiv.org/abs/2211.10586>`_
    """
    if not inner.plain() or inner.pace is not None:
        raise ValueError("TESLA's gradient is that of plain SGD at one rate: take the exact one")
    theta, (travelled,), products = _train(inner, with_theta=False)
    objective, adjoint = _end(inner, theta)
    followed = adjoint
    if inner.of_rates is not None:
        objective, followed = _end(replace(inner, objective=inner.of_rates), theta)
    rates = -inner.dots(followed, travelled)
    direction = inner.scale_(adjoint, -inner.rates.detach())
    del theta, travelled, followed  # as long as θ, and not needed any more
    gradients, room = [], torch.empty_like(direction)
    while products:
        gradients.append(products.pop()(room.copy_(direction)).batch)
        mark_step(room.device)
    return MetaGradient(objective, gradients[::-1], rates)


def _train(
    inner: Inner, with_theta: bool
) -> tuple[Tensor, list[Tensor], list[Callable[[Tensor], Product]]]:
    """θ_t; the v_i where they differ from the g_i, or only the sum of all g_i unless
    ``with_theta``; and what gives each step's derivative.

    New vectors as long as θ cost more than sums: where g is not kept, the next θ takes its place.
    """
    theta, products = inner.theta.detach(), []
    travelled: list[Tensor] = []
    for i, batch in enumerate(inner.batches):
        g, product = inner.derivative(inner.loss_of(i), theta, batch, with_theta)
        products.append(product)
        if with_theta:
            v = inner.velocity(theta, g, travelled[-1] if travelled else None)
            theta = inner.stepped(theta, v, torch.empty_like(v), i)
            if not inner.plain():
                travelled.append(v)
        elif not travelled:
            travelled.append(g)
            theta = inner.stepped(theta, g, torch.empty_like(g), i)
        else:
            travelled[0] += g
            theta = inner.stepped(theta, g, g, i)
        mark_step(theta.device)
    return theta, travelled, products


def _end(inner: Inner, theta: Tensor) -> tuple[Tensor, Tensor]:
    """The objective at θ_t, and λ."""
    theta = theta.detach().requires_grad_()
    objective = inner.objective(theta)
    return objective.detach(), torch.autograd.grad(objective, theta)[0].contiguous()


def _apart(way: Callable[[Inner], MetaGradient], inner: Inner) -> MetaGradient:
    """The gradient of the batches from one run, and that of the rates from another."""
    assert inner.of_rates is not None
    held = [Batch(*(tensor.detach() for tensor in batch)) for batch in inner.batches]
    data = way(replace(inner, of_rates=None))
    rates = way(replace(inner, of_rates=None, objective=inner.of_rates, batches=held))
    return MetaGradient(rates.objective, data.batches, rates.rates)


META_GRADIENTS: dict[str, Callable[[Inner], MetaGradient]] = {
    "exact": exact,
    "tesla": tesla,
    "unrolled": unrolled,
}
