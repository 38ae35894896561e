"""Meta-gradients of linear heads, without their parameters.

A step of SGD moves a linear head W by ηΔᵀX, where X are the inputs of the batch and Δ is the
gradient of the loss in its outputs XWᵀ. So after i steps outputs are

    X_i W_iᵀ = X_i W_0ᵀ - η Σ_{j<i} (X_i X_jᵀ) Δ_j,

and the distance to the target W* follows from the same products:

    ‖W_t - W*‖² = ‖D‖² - 2η Σ_i ⟨Δ_i, X_i Dᵀ⟩ + η² Σ_ij ⟨Δ_i, (X_i X_jᵀ) Δ_j⟩,  D = W_0 - W*.

A run of t steps on m pairs needs W_0 and D once, for tm inputs, and then matrices of tm rows only.
Autograd goes through all of it: the results are those of ``exact`` and ``tesla``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lors.encoders import DualEncoder
from lors.losses import Loss
from lors.matching.meta_gradient import MetaGradient
from lors.training import Batch

__all__ = ["linear_heads", "worth_it"]


def worth_it(model: DualEncoder, inputs: int) -> bool:
    """Whether both sides are linear, and the inputs of a run few enough for this to be cheaper.

    Args:
        model: the dual encoder.
        inputs: tm, the inputs of all steps together.
    """
    heads = (model.image, model.text)
    linear = [head for head in heads if isinstance(head, nn.Linear) and head.bias is not None]
    return len(linear) == 2 and inputs <= sum(head.in_features for head in linear)


def linear_heads(
    model: DualEncoder,
    loss: Loss,
    start: Tensor,
    target: Tensor,
    batches: Sequence[Batch],
    rates: Tensor,
    ratio: str,
    carry: bool,
) -> MetaGradient:
    """The gradient of the distance ratio after an inner run.

    Args:
        model: a dual encoder whose sides are linear.
        loss: of logits and S.
        start: θ_0. Shape: (P,)
        target: θ*. Shape: (P,)
        batches: one per step; gradients are computed for those tensors that require them.
        rates: learning rates of the image side and the text side. Shape: (2,)
        ratio: ``merged``, ``separate`` or ``merged-published``, which is ``separate`` for the rates
            and the objective, and ``merged`` for the batches.
        carry: True gives the exact gradient, False that of TESLA.
    """
    leaves, rates = [batch.leaves() for batch in batches], rates.detach().requires_grad_()
    sizes = [sum(p.numel() for p in parameters) for parameters in model.sides()]
    inputs = (torch.cat(parts) for parts in list(zip(*leaves, strict=True))[:2])
    sides = [
        Side(*parts, carry)
        for parts in zip(
            (model.image, model.text),
            inputs,
            start.split(sizes),
            target.split(sizes),
            rates,
            strict=True,
        )
    ]
    done = 0
    for batch in leaves:
        rows = slice(done, done + len(batch.inputs))
        outputs = [side.outputs(rows) for side in sides]
        value = loss(model.logits(*outputs), batch.similarity)
        for side, slope in zip(
            sides, torch.autograd.grad(value, outputs, create_graph=True), strict=True
        ):
            side.slopes.append(slope)
        done = rows.stop
    whole = torch.stack([side.whole for side in sides])
    merged, separate = 1 / whole.sum().expand(2), 1 / whole
    of_batches = separate if ratio == "separate" else merged
    of_rates = merged if ratio == "merged" else separate
    distances = torch.stack([side.distance() for side in sides])
    objective = (of_rates * distances.detach()).sum()
    if not carry:
        distances = torch.stack([side.distance_by_last_steps() for side in sides])
    wanted = [tensor for batch in leaves for tensor in batch if tensor.requires_grad]

    def gradients(weights: Tensor) -> tuple[Tensor, ...]:
        inputs = [rates, *wanted]
        return torch.autograd.grad(
            distances, inputs, weights, retain_graph=True, materialize_grads=True
        )

    rate_gradient, *found = gradients(of_rates)
    if of_batches is not of_rates:
        _, *found = gradients(of_batches)
    rest = iter(found)
    return MetaGradient(objective, [batch.gradients(rest) for batch in leaves], rate_gradient)


class Side:
    """One linear head in an inner run.

    Args:
        head: gives the sizes; its weights are not touched.
        inputs: of all steps. Shape: (tm, f)
        start: W_0 and its bias, strung together. Shape: (P,)
        target: W* likewise.
        rate: η.
        carry: whether later steps see how earlier ones depend on the data.
    """

    def __init__(
        self,
        head: nn.Module,
        inputs: Tensor,
        start: Tensor,
        target: Tensor,
        rate: Tensor,
        carry: bool,
    ) -> None:
        assert isinstance(head, nn.Linear)
        self.rate, self.carry = rate, carry
        self.slopes: list[Tensor] = []
        inputs = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], 1)  # the bias's input
        weight, difference = (_matrix(w, head.out_features) for w in (start, start - target))
        self.at_start = inputs @ weight.T
        self.towards = inputs @ difference.T
        self.products = inputs @ (inputs if carry else inputs.detach()).T
        self.whole = difference.square().sum()

    def outputs(self, rows: slice) -> Tensor:
        """X_i W_iᵀ after the steps so far. Shape: (m, d)"""
        outputs = self.at_start[rows]
        if self.slopes:
            outputs = outputs - self._held(self.rate) * (
                self.products[rows, : rows.start] @ self._held(torch.cat(self.slopes))
            )
        return outputs if outputs.requires_grad else outputs.requires_grad_()

    def distance(self) -> Tensor:
        """‖W_t - W*‖²"""
        slopes = torch.cat(self.slopes)
        along, moved = (slopes * self.towards).sum(), (slopes * (self.products @ slopes)).sum()
        return self.whole - 2 * self.rate * along + self.rate**2 * moved

    def distance_by_last_steps(self) -> Tensor:
        """What has the derivative of the distance when every step's start is held, as in TESLA."""
        slopes = torch.cat(self.slopes)
        at_end = self.towards - self._held(self.rate) * (self.products @ self._held(slopes))
        return -2 * self.rate * (slopes * at_end).sum()

    def _held(self, tensor: Tensor) -> Tensor:
        return tensor if self.carry else tensor.detach()


def _matrix(parameters: Tensor, outputs: int) -> Tensor:
    """[W, b] of a linear layer's numbers, W first. Shape: (P,) -> (d, f + 1)"""
    weight, bias = parameters[:-outputs], parameters[-outputs:]
    return torch.cat([weight.view(outputs, -1), bias[:, None]], 1)
