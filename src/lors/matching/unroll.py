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
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from lors.encoders import DualEncoder
from lors.encoders.heads import Residual, first_layer
from lors.losses import Loss
from lors.matching.twice import gelu, layer_norm, sgd_step, unit_rows
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
        steps: the indices of each step's batch; of a step on all pairs the order does not count.
            Shape of each: (m,)
        loss: of logits and S.
        rates: of each step, learning rates of the image side and the text side. Shape: (2,)
        momentum: μ.
        weight_decay: δ.
        side: how each side is kept, of its module and inputs; default: the cheapest way.
    """
    side = side or _cheapest
    sides = [side(model.image, whole.inputs), side(model.text, whole.texts)]
    for index, now in zip(steps, rates, strict=True):
        part = None if len(index) == len(whole.inputs) else index
        outputs, inner = zip(*(each.outputs(part) for each in sides), strict=True)
        similarity = whole.similarity if part is None else whole.similarity[part[:, None], part]
        images, texts = (unit_rows(output) for output in outputs)
        value = loss(images @ texts.T / model.temperature, similarity)
        every = [tensor for tensors in inner for tensor in tensors]
        found = list(torch.autograd.grad(value, every, create_graph=True, materialize_grads=True))
        for each, tensors, rate in zip(sides, inner, now, strict=True):
            gradients, found = found[: len(tensors)], found[len(tensors) :]
            each.step(gradients, part, rate, momentum, weight_decay)
    return sides


class Side(Protocol):
    """One side of a dual encoder that trains on N inputs."""

    def outputs(self, index: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """What it gives for some of its inputs, and what to differentiate a loss of that in.

        Args:
            index: which inputs; None for all.
        """
        ...

    def step(
        self,
        found: list[Tensor],
        index: Tensor | None,
        rate: Tensor,
        momentum: float,
        weight_decay: float,
    ) -> None:
        """One step of SGD, with the gradients in what ``outputs`` named."""
        ...

    def __call__(self, inputs: Tensor) -> Tensor:
        """What it gives for any inputs, not normalised. Shape: (m, …) -> (m, d)"""
        ...


def _cheapest(module: nn.Module, inputs: Tensor) -> Side:
    layers = first_layer(module)
    return PlainSide(module, inputs) if layers is None else HeadSide(*layers, inputs)


class PlainSide:
    """A side of any kind, by its parameters, which are kept as one vector.

    Args:
        module: gives its parameters at the start.
        inputs: Shape: (N, …)
        first: values before the parameters.
    """

    def __init__(self, module: nn.Module, inputs: Tensor, first: Sequence[Tensor] = ()) -> None:
        self.module, self.inputs = module, inputs
        learned = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names, values = list(learned), [*first, *learned.values()]
        self.shapes = [value.shape for value in values]
        self._move(torch.cat([value.detach().reshape(-1) for value in values]).requires_grad_())
        self.velocity = torch.zeros_like(self.theta)

    def _move(self, theta: Tensor) -> None:
        parts = theta.split([shape.numel() for shape in self.shapes])
        self.theta = theta
        self.values = [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def outputs(self, index: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        return self(self.inputs if index is None else self.inputs[index]), self.values

    def step(
        self,
        found: list[Tensor],
        index: Tensor | None,
        rate: Tensor,
        momentum: float,
        weight_decay: float,
    ) -> None:
        gradient = torch.cat([part.reshape(-1) for part in found])
        theta, self.velocity = sgd_step(
            self.theta, self.velocity, gradient, rate, momentum, weight_decay
        )
        self._move(theta)

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
        self.weight = layer.weight.detach()
        self.first, self.products = inputs @ self.weight.T, inputs @ inputs.T
        own = [self.weight.new_ones(()), torch.zeros_like(self.first)]
        own += [] if layer.bias is None else [layer.bias]
        self.own = len(own)
        super().__init__(rest, inputs, own)

    def outputs(self, index: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        first, products = self.first, self.products
        if index is not None:
            first, products = first[index], products[index]
        projected = self._projected(first, products)
        return self._finished(projected), [projected, *self.values[2:]]

    def step(
        self,
        found: list[Tensor],
        index: Tensor | None,
        rate: Tensor,
        momentum: float,
        weight_decay: float,
    ) -> None:
        scale, coefficients = torch.zeros_like(self.values[0]), found[0]
        if index is not None:
            coefficients = torch.zeros_like(self.first).index_add(0, index, coefficients)
        found = [scale, coefficients, *found[1:]]
        super().step(found, index, rate, momentum, weight_decay)

    def __call__(self, inputs: Tensor) -> Tensor:
        products = inputs @ self.inputs.T
        return self._finished(self._projected(inputs @ self.weight.T, products))

    def _projected(self, first: Tensor, products: Tensor) -> Tensor:
        """The outputs of the layer, without its bias. Shape: (m, d)"""
        scale, coefficients = self.values[:2]
        return torch.addmm(scale * first, products, coefficients)

    def _finished(self, projected: Tensor) -> Tensor:
        if self.own > 2:
            projected = projected + self.values[2]
        rest = self.values[self.own :]
        if isinstance(self.module, Residual):
            weight, bias, *norm = rest
            outputs = projected + torch.addmm(bias, gelu(projected), weight.T)
            return layer_norm(outputs, self.module.norm, *norm)
        values = dict(zip(self.names, rest, strict=True))
        outputs: Tensor = functional_call(self.module, values, (projected,))
        return outputs
