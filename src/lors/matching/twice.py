"""GELU, unit rows, layer norm and a step of SGD with their second derivatives written out.

Autograd makes second derivatives of these out of some hundred small operations. A head of a few
hundred numbers spends more time on those than on its matrix products.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

__all__ = ["gelu", "layer_norm", "sgd_step", "unit_rows"]

Found = tuple[Tensor | None, ...]


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), as ``torch.nn.functional.gelu``.

    >>> gelu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    return _apply(_Gelu, x)


def unit_rows(x: Tensor, eps: float = 1e-24, centred: bool = False) -> Tensor:
    """Each row divided by √(its squared length + ε).

    Args:
        x: Shape: (m, d)
        eps: ε.
        centred: subtract the mean of each row first.

    >>> unit_rows(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return _apply(_UnitRows, x, eps, centred)


def layer_norm(x: Tensor, norm: nn.LayerNorm, weight: Tensor, bias: Tensor) -> Tensor:
    """As ``norm`` does it, with another weight and bias. Shape: (m, d) -> (m, d)"""
    size = x.shape[-1]
    return torch.addcmul(bias, unit_rows(x, size * norm.eps, centred=True), size**0.5 * weight)


def sgd_step(
    theta: Tensor,
    velocity: Tensor,
    gradient: Tensor,
    rate: Tensor,
    momentum: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor]:
    """θ - ηv and v, after v ← μv + g + δθ. Shapes: (P,), (P,), (P,), () -> (P,), (P,)"""
    found: tuple[Tensor, Tensor] = _Step.apply(  # type: ignore[no-untyped-call]
        theta, velocity, gradient, rate, momentum, weight_decay
    )
    return found


def _apply(function: type[Function], *arguments: object) -> Tensor:
    found: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return found


class _Gelu(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        below = torch.erf(x * 0.5**0.5).add_(1).mul_(0.5)
        density = x.square().mul_(-0.5).exp_().mul_((2 * math.pi) ** -0.5)
        ctx.save_for_backward(x)
        ctx.density, ctx.slope = density, torch.addcmul(below, x, density)
        return below.mul_(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _apply(_GeluBackward, gradient, *ctx.saved_tensors, ctx.slope, ctx.density)


class _GeluBackward(Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor, slope: Tensor, density: Tensor) -> Tensor:
        ctx.save_for_backward(gradient, x, slope, density)
        return gradient * slope

    @staticmethod
    def backward(ctx: Any, other: Tensor) -> Found:
        gradient, x, slope, density = ctx.saved_tensors
        curve = torch.sub(2, x.square()).mul_(density)
        return other * slope, curve.mul_(gradient).mul_(other), None, None


class _UnitRows(Function):
    """y = x / n with n = √(|x|² + ε)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float, centred: bool) -> Tensor:
        ctx.centred = centred
        y = x - x.mean(1, keepdim=True) if centred else x
        length = y.square().sum(1, keepdim=True).add_(eps).sqrt_()
        y = y / length
        ctx.length = length
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Found:
        x, y = ctx.saved_tensors
        return _apply(_UnitRowsBackward, gradient, x, y.detach(), ctx.length, ctx.centred), None, None


class _UnitRowsBackward(Function):
    """d = (g - y⟨y, g⟩) / n, of which g and h, what is multiplied with it, are centred as x is."""

    @staticmethod
    def forward(
        ctx: Any, gradient: Tensor, x: Tensor, y: Tensor, length: Tensor, centred: bool
    ) -> Tensor:
        ctx.centred = centred
        gradient = _centred(gradient) if centred else gradient
        along = (y * gradient).sum(1, keepdim=True)
        ctx.save_for_backward(gradient, y, length, along)
        return torch.addcmul(gradient, y, along, value=-1).div_(length)

    @staticmethod
    def backward(ctx: Any, other: Tensor) -> Found:
        g, y, n, a = ctx.saved_tensors
        h = _centred(other) if ctx.centred else other
        b = (y * h).sum(1, keepdim=True)
        in_x = (h * g).sum(1, keepdim=True).addcmul_(a, b, value=-3) * y
        in_x.addcmul_(h, a).addcmul_(g, b).div_(n.square().neg_())
        return torch.addcmul(h, y, b, value=-1).div_(n), in_x, None, None, None


def _centred(rows: Tensor) -> Tensor:
    return rows - rows.mean(1, keepdim=True)


class _Step(Function):
    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        velocity: Tensor,
        gradient: Tensor,
        rate: Tensor,
        momentum: float,
        weight_decay: float,
    ) -> tuple[Tensor, Tensor]:
        ctx.momentum, ctx.weight_decay = momentum, weight_decay
        velocity = gradient.add(velocity, alpha=momentum).add_(theta, alpha=weight_decay)
        ctx.save_for_backward(velocity, rate)
        return torch.addcmul(theta, velocity, rate, value=-1), velocity

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, in_theta: Tensor, in_velocity: Tensor) -> Found:
        velocity, rate = ctx.saved_tensors
        in_gradient = torch.addcmul(in_velocity, in_theta, rate, value=-1)
        return (
            in_theta.add(in_gradient, alpha=ctx.weight_decay),
            ctx.momentum * in_gradient,
            in_gradient,
            -torch.dot(in_theta, velocity) if ctx.needs_input_grad[3] else None,
            None,
            None,
        )
