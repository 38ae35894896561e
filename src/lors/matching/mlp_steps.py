"""Steps of SGD on two heads LayerNorm(p + W GELU(p)), with all derivatives written out.

Autograd would make a graph of a graph of every step: hundreds of small operations and of kept
tensors, which take longer than the matrix products. Here a step is one function. It keeps what its
derivative needs, and that is computed directly.

A head has p = sF + KC + b, where F = XW_0ᵀ and K = XXᵀ (see ``unroll``), z = p + W' GELU(p) + b',
x = (z - its mean) ρ with the deviation 1/ρ, y = γx + β and u = y / |y|, row by row. θ strings
s, C, b, W', b', γ, β together.

Names of derivatives: ``in_x`` is the derivative in x of the loss of the step; ``of_in_x`` and
``of_x`` are derivatives of what comes after all steps, in that and in x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from lors.losses import Loss

__all__ = ["Shared", "parts_of", "sgd_step"]

Both = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Shared:
    """What all steps share.

    Args:
        loss: of logits and S.
        temperature: τ.
        momentum: μ.
        weight_decay: δ.
        shape: of C.
        eps: of the layer norms of both sides.
    """

    loss: Loss
    temperature: float
    momentum: float
    weight_decay: float
    shape: torch.Size
    eps: tuple[float, float]


def parts_of(theta: Tensor, shape: torch.Size) -> list[Tensor]:
    """s, C, b, W', b', γ and β of θ, as views.

    Args:
        theta: Shape: (P,)
        shape: of C.
    """
    size = shape[1]
    scale, coefficients, bias, weight, *rest = theta.split(
        [1, shape.numel(), size, size * size, size, size, size]
    )
    return [scale, coefficients.view(shape), bias, weight.view(size, size), *rest]


def sgd_step(
    shared: Shared,
    index: Tensor | None,
    thetas: Both,
    velocities: Both,
    rates: Tensor,
    inputs: tuple[Tensor, ...],
) -> tuple[Both, Both]:
    """θ and v of both sides after one step, differentiable in all tensors, once.

    Args:
        shared: by all steps.
        index: the rows of C that are the batch's; None for all.
        thetas: of both sides.
        velocities: of both sides.
        rates: of both sides. Shape: (2,)
        inputs: F and K of the batch, of the image and of the text side; S.
    """
    found: tuple[Tensor, ...] = _Step.apply(shared, index, *thetas, *velocities, rates, *inputs)
    return (found[0], found[1]), (found[2], found[3])


class _Step(Function):
    @staticmethod
    def forward(
        ctx: Any, shared: Shared, index: Tensor | None, *values: Tensor
    ) -> tuple[Tensor, ...]:
        thetas, velocities, rates, similarity = values[:2], values[2:4], values[4], values[-1]
        image = _Side(thetas[0], values[5], values[6], index, shared.shape, shared.eps[0])
        text = _Side(thetas[1], values[7], values[8], index, shared.shape, shared.eps[1])
        with torch.enable_grad():
            logits = (image.u @ text.u.T).div_(shared.temperature).requires_grad_()
            similarity = similarity.detach().requires_grad_()
            value = shared.loss(logits, similarity)
            (in_logits,) = torch.autograd.grad(value, logits, create_graph=True)
        in_cosines = in_logits.detach() / shared.temperature
        found = image.gradient(in_cosines @ text.u), text.gradient(in_cosines.T @ image.u)
        for gradient, velocity, theta in zip(found, velocities, thetas, strict=True):
            gradient.add_(velocity, alpha=shared.momentum).add_(theta, alpha=shared.weight_decay)
        ctx.shared, ctx.sides = shared, (image, text)
        ctx.loss, ctx.in_cosines = (logits, similarity, in_logits), in_cosines
        ctx.save_for_backward(*found, rates)
        steps = zip(thetas, found, rates, strict=True)
        return (*(torch.addcmul(t, v, rate, value=-1) for t, v, rate in steps), *found)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *after: Tensor) -> tuple[Tensor | None, ...]:
        shared: Shared = ctx.shared
        image, text = ctx.sides
        *found, rates = ctx.saved_tensors
        of_rates = torch.stack([-of @ v for of, v in zip(after[:2], found, strict=True)])
        of_found = [
            torch.addcmul(of_velocity, of_theta, rate, value=-1)
            for of_theta, of_velocity, rate in zip(after[:2], after[2:], rates, strict=True)
        ]
        of_in_image, of_in_text = image.of_in_u(of_found[0]), text.of_in_u(of_found[1])
        of_image, of_text = ctx.in_cosines @ of_in_text, ctx.in_cosines.T @ of_in_image
        of_similarity = None
        logits, similarity, in_logits = ctx.loss
        if in_logits.requires_grad:
            of_in_logits = (of_in_image @ text.u.T).addmm_(image.u, of_in_text.T)
            of_logits, of_similarity = torch.autograd.grad(
                in_logits,
                (logits, similarity),
                of_in_logits.div_(shared.temperature),
                allow_unused=True,
            )
            if of_logits is not None:
                of_cosines = of_logits / shared.temperature
                of_image.addmm_(of_cosines, text.u)
                of_text.addmm_(of_cosines.T, image.u)
        of_thetas, of_inputs = [], []
        for side, of_u, of_theta, found in zip(
            ctx.sides, (of_image, of_text), after[:2], of_found, strict=True
        ):
            here, *inputs = side.of_theta(of_u)
            of_thetas.append(here.add_(of_theta).add_(found, alpha=shared.weight_decay))
            of_inputs += inputs
        of_velocities = [shared.momentum * found for found in of_found]
        return (None, None, *of_thetas, *of_velocities, of_rates, *of_inputs, of_similarity)


class _Side:
    """One side in one step: u, then ``gradient``, then ``of_in_u`` and ``of_theta`` backwards."""

    def __init__(
        self,
        theta: Tensor,
        first: Tensor,
        products: Tensor,
        index: Tensor | None,
        shape: torch.Size,
        eps: float,
    ) -> None:
        self.theta, self.first, self.products = theta, first, products
        self.index, self.shape = index, shape
        scale, coefficients, bias, weight, hidden_bias, gain, shift = parts_of(theta, shape)
        p = torch.addmm(bias, products, coefficients).add_(first * scale)
        below = torch.erf(p * 0.5**0.5).add_(1).mul_(0.5)
        squares = p.square()
        density = (squares * -0.5).exp_().mul_((2 * math.pi) ** -0.5)
        self.slope = torch.addcmul(below, p, density)  # of GELU, and then its curvature
        self.curve = density.mul_(squares.neg_().add_(2))
        self.hidden = below.mul_(p)
        z = torch.addmm(hidden_bias, self.hidden, weight.T).add_(p)
        z.sub_(z.mean(1, keepdim=True))
        self.rho = _mean(z, z).add_(eps).rsqrt_()
        self.x = z.mul_(self.rho)
        y = torch.addcmul(shift, self.x, gain)
        self.length = torch.linalg.vector_norm(y, dim=1, keepdim=True).clamp_(min=1e-12)
        self.u = y.div_(self.length)

    def gradient(self, in_u: Tensor) -> Tensor:
        """The derivative of the loss in θ, from that in u."""
        _, _, _, weight, _, gain, _ = parts_of(self.theta, self.shape)
        u, x = self.u, self.x
        self.along = (u * in_u).sum(1, keepdim=True)
        self.in_y = torch.addcmul(in_u, u, self.along, value=-1).div_(self.length)
        in_x = self.in_y * gain
        self.in_z = self._normalised(in_x, _mean(in_x, x))
        self.in_hidden = self.in_z @ weight
        in_p = torch.addcmul(self.in_z, self.in_hidden, self.slope)
        found = torch.zeros_like(self.theta)
        _, coefficients, bias, weight, hidden_bias, gain, shift = parts_of(found, self.shape)
        if self.index is None:
            coefficients.copy_(in_p)
        else:
            coefficients.index_copy_(0, self.index, in_p)
        torch.sum(in_p, 0, out=bias)
        torch.mm(self.in_z.T, self.hidden, out=weight)
        torch.sum(self.in_z, 0, out=hidden_bias)
        torch.sum(self.in_y * x, 0, out=gain)
        torch.sum(self.in_y, 0, out=shift)
        return found

    def of_in_u(self, of_found: Tensor) -> Tensor:
        """The derivative in ``in_u``, from that in the gradient that ``gradient`` gave."""
        _, _, _, weight, _, gain, _ = parts_of(self.theta, self.shape)
        _, of_in_p, of_bias, of_weight, of_hidden_bias, of_gain, of_shift = parts_of(
            of_found, self.shape
        )
        u, x, in_y = self.u, self.x, self.in_y
        of_in_p = (of_in_p if self.index is None else of_in_p[self.index]) + of_bias
        of_in_hidden = of_in_p * self.slope
        of_in_z = torch.addmm(of_hidden_bias, of_in_hidden, weight.T)
        of_in_z.addmm_(self.hidden, of_weight.T).add_(of_in_p)
        self.of_p = of_in_p.mul_(self.in_hidden).mul_(self.curve)
        self.of_weight = self.in_z.T @ of_in_hidden
        self.of_hidden = self.in_z @ of_weight
        with_x, self.with_in_z = _mean(of_in_z, x), _mean(of_in_z, self.in_z)
        of_in_x, in_x = self._normalised(of_in_z, with_x), in_y * gain
        self.of_x = (of_in_z * _mean(in_x, x)).addcmul_(in_x, with_x).mul_(-self.rho)
        self.of_x.addcmul_(in_y, of_gain)
        self.of_gain = (of_in_x * in_y).sum(0)
        of_in_y = torch.addcmul(of_shift, of_in_x, gain).addcmul_(x, of_gain)
        along = (u * of_in_y).sum(1, keepdim=True)
        share = self.along / self.length
        both = (of_in_y * in_y).sum(1, keepdim=True).addcmul_(along, share, value=-1)
        of_y = (of_in_y * share).addcmul_(in_y, along).addcmul_(u, both)
        self.of_y = of_y.div_(-self.length)
        return of_in_y.addcmul_(u, along, value=-1).div_(self.length)

    def of_theta(self, of_u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The derivatives in θ, F and K, from that in u and from what ``of_in_u`` kept."""
        scale, coefficients, _, weight, _, gain, _ = parts_of(self.theta, self.shape)
        u, x = self.u, self.x
        of_u = of_u.addcmul_(u, (u * of_u).sum(1, keepdim=True), value=-1)
        of_y = of_u.div_(self.length).add_(self.of_y)
        of_x = self.of_x.addcmul_(of_y, gain)
        of_z = self._normalised(of_x, _mean(of_x, x).add_(self.with_in_z))
        of_hidden = self.of_hidden.addmm_(of_z, weight)
        of_p = self.of_p.add_(of_z).addcmul_(of_hidden, self.slope)
        found = torch.empty_like(self.theta)
        of_scale, of_coefficients, of_bias, of_weight, of_hidden_bias, of_gain, of_shift = parts_of(
            found, self.shape
        )
        torch.sum((of_p * self.first).view(1, -1), 1, out=of_scale)
        torch.mm(self.products.T, of_p, out=of_coefficients)
        torch.sum(of_p, 0, out=of_bias)
        torch.addmm(self.of_weight, of_z.T, self.hidden, out=of_weight)
        torch.sum(of_z, 0, out=of_hidden_bias)
        torch.add((of_y * x).sum(0), self.of_gain, out=of_gain)
        torch.sum(of_y, 0, out=of_shift)
        return found, of_p * scale, of_p @ coefficients.T

    def _normalised(self, rows: Tensor, with_x: Tensor) -> Tensor:
        """The derivative in z, from that in x, of which the mean with x is known."""
        centred = rows - rows.mean(1, keepdim=True)
        return centred.addcmul_(self.x, with_x, value=-1).mul_(self.rho)


def _mean(first: Tensor, second: Tensor) -> Tensor:
    """Of the products of two rows. Shape: (m, d), (m, d) -> (m, 1)"""
    return (first * second).mean(1, keepdim=True)
