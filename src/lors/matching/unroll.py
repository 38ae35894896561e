"""Training on a set as a differentiable function of the set.

Steps of SGD with momentum μ and weight decay δ, v ← μv + g + δθ and θ ← θ - ηv, for which autograd
keeps everything: what is computed with the end can be differentiated in the data, S and the rates.

A head that begins with a linear layer W never needs the gradient in W. Each step adds rows of
inputs to W, so after any number of them

    W = sW_0 + CᵀX,   and   XWᵀ = s(XW_0ᵀ) + (XXᵀ)C,

where X are the N inputs, C are N x d coefficients and the number s, at first 1, is what weight
decay left of W_0. The momentum of W has the same form, so s and C go through the same steps as
parameters do, and with XW_0ᵀ and XXᵀ computed once, a step only touches matrices of N rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from lors.encoders import DualEncoder
from lors.encoders.heads import Residual, first_layer
from lors.losses import Loss
from lors.matching.mlp_steps import Shared, parts_of, sgd_step
from lors.training import Batch

__all__ = ["train_differentiably"]


def train_differentiably(
    model: DualEncoder,
    whole: Batch,
    steps: Sequence[Tensor],
    loss: Loss,
    rates: Sequence[Tensor],
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    side: Callable[[nn.Module, Tensor], Side] | None = None,
) -> list[Side]:
    """Train on batches of a set; the image side and the text side as they are at the end.

    Args:
        model: where to start; it is not changed.
        whole: all pairs that the steps use.
        steps: the indices of each step's batch. Shape of each: (m,)
        loss: of logits and S.
        rates: of each step, learning rates of the image side and the text side. Shape: (2,)
        momentum: μ.
        weight_decay: δ.
        side: how each side is kept, of its module and inputs; default: the cheapest way.
    """
    side = side or _cheapest
    sides = [side(model.image, whole.inputs), side(model.text, whole.texts)]
    if all(isinstance(each, HeadSide) and each.mlp for each in sides):
        shared = partial(Shared, loss, model.temperature, momentum, weight_decay)
        return _train_mlps(sides, whole.similarity, steps, rates, shared)
    for index, now in zip(steps, rates, strict=True):
        outputs, inner = zip(*(each.outputs(index) for each in sides), strict=True)
        similarity = whole.similarity[index[:, None], index]
        value = loss(model.logits(*outputs), similarity)
        every = [tensor for tensors in inner for tensor in tensors]
        found = list(torch.autograd.grad(value, every, create_graph=True, materialize_grads=True))
        for each, tensors, rate in zip(sides, inner, now, strict=True):
            gradients, found = found[: len(tensors)], found[len(tensors) :]
            each.step(each.gradients(gradients, index), rate, momentum, weight_decay)
    return sides


def _train_mlps(
    sides: list[Any],
    similarity: Tensor,
    steps: Sequence[Tensor],
    rates: Sequence[Tensor],
    shared: Callable[[torch.Size, tuple[float, float]], Shared],
) -> list[Side]:
    """Train two heads with a hidden layer, by derivatives that are written out."""
    image, text = sides
    shape = image.first.shape
    always = shared(shape, (image.module.norm.eps, text.module.norm.eps))
    first, second = (torch.cat([value.reshape(-1) for value in each.values]) for each in sides)
    thetas, velocities = (first, second), (torch.zeros_like(first), torch.zeros_like(second))
    whole = (image.first, image.products, text.first, text.products, similarity)
    for index, now in zip(steps, rates, strict=True):
        inputs, part = whole, None
        if len(index) < shape[0]:  # of a step on all pairs the order does not count
            inputs, part = (
                (*(t[index] for t in whole[:4]), similarity[index[:, None], index]),
                index,
            )
        thetas, velocities = sgd_step(always, part, thetas, velocities, now, inputs)
    for each, theta in zip(sides, thetas, strict=True):
        scale, *rest = parts_of(theta, shape)
        each.values = [scale.view(()), *rest]
    return sides


class Side(Protocol):
    """One side of a dual encoder that trains on N inputs."""

    def outputs(self, index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """What it gives for some of its inputs, and what to differentiate a loss of that in."""
        ...

    def gradients(self, found: list[Tensor], index: Tensor) -> list[Tensor]:
        """The gradients of its values, from those in what ``outputs`` named."""
        ...

    def step(
        self, gradients: list[Tensor], rate: Tensor, momentum: float, weight_decay: float
    ) -> None:
        """One step of SGD."""
        ...

    def __call__(self, inputs: Tensor) -> Tensor:
        """What it gives for any inputs, not normalised. Shape: (m, …) -> (m, d)"""
        ...


def _cheapest(module: nn.Module, inputs: Tensor) -> Side:
    layers = first_layer(module)
    return PlainSide(module, inputs) if layers is None else HeadSide(*layers, inputs)


class PlainSide:
    """A side of any kind, by its parameters.

    Args:
        module: gives its parameters at the start.
        inputs: Shape: (N, …)
    """

    def __init__(self, module: nn.Module, inputs: Tensor) -> None:
        self.module, self.inputs = module, inputs
        learned = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names = list(learned)
        self.values = [p.detach().requires_grad_() for p in learned.values()]
        self.velocities = [torch.zeros_like(value) for value in self.values]

    def outputs(self, index: Tensor) -> tuple[Tensor, list[Tensor]]:
        return self(self.inputs[index]), self.values

    def gradients(self, found: list[Tensor], index: Tensor) -> list[Tensor]:
        return found

    def step(
        self, gradients: list[Tensor], rate: Tensor, momentum: float, weight_decay: float
    ) -> None:
        values = zip(self.values, self.velocities, gradients, strict=True)
        self.velocities = [
            g.add(v, alpha=momentum).add(value, alpha=weight_decay) for value, v, g in values
        ]
        self.values = [x - rate * v for x, v in zip(self.values, self.velocities, strict=True)]

    def __call__(self, inputs: Tensor) -> Tensor:
        values = dict(zip(self.names, self.values, strict=True))
        with sdpa_kernel(SDPBackend.MATH):  # the only attention with second derivatives
            outputs: Tensor = functional_call(self.module, values, (inputs,))
        return outputs


class HeadSide(PlainSide):
    """A head that begins with a linear layer, of which only C and s are kept.

    Its values are s, C, the layer's bias if it has one, and the parameters of what follows.

    Args:
        layer: the linear layer.
        rest: what follows.
        inputs: X. Shape: (N, f)
    """

    def __init__(self, layer: nn.Linear, rest: nn.Module, inputs: Tensor) -> None:
        super().__init__(rest, inputs)
        self.weight = layer.weight.detach()
        self.first, self.products = inputs @ self.weight.T, inputs @ inputs.T
        bias = [] if layer.bias is None else [layer.bias.detach().requires_grad_()]
        own = [self.weight.new_ones(()), torch.zeros_like(self.first), *bias]
        self.own = len(own)
        self.mlp = isinstance(rest, Residual) and layer.bias is not None
        self.values = [*own, *self.values]
        self.velocities = [torch.zeros_like(value) for value in self.values]

    def outputs(self, index: Tensor) -> tuple[Tensor, list[Tensor]]:
        projected = self._projected(self.first[index], self.products[index])
        if not projected.requires_grad:  # images that are not learned, at the first step
            projected.requires_grad_()
        return self._finished(projected), [projected, *self.values[2:]]

    def gradients(self, found: list[Tensor], index: Tensor) -> list[Tensor]:
        scale, coefficients = (torch.zeros_like(value) for value in self.values[:2])
        return [scale, coefficients.index_add(0, index, found[0]), *found[1:]]

    def __call__(self, inputs: Tensor) -> Tensor:
        products = inputs @ self.inputs.T
        return self._finished(self._projected(inputs @ self.weight.T, products))

    def _projected(self, first: Tensor, products: Tensor) -> Tensor:
        """The outputs of the layer, without its bias. Shape: (m, d)"""
        scale, coefficients = self.values[:2]
        return scale * first + products @ coefficients

    def _finished(self, projected: Tensor) -> Tensor:
        bias = self.values[2] if self.own > 2 else 0.0
        rest = dict(zip(self.names, self.values[self.own :], strict=True))
        outputs: Tensor = functional_call(self.module, rest, (projected + bias,))
        return outputs
