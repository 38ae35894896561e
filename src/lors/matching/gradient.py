"""Gradient matching: a step on synthetic data should go where a step on real data goes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lors.config.matchers import GradientOptions
from lors.matching.matcher import add_gradients
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.seeding import draw_seed
from lors.training import Batch

__all__ = ["GradientMatcher", "gradient_distance"]


def gradient_distance(real: Sequence[Tensor], synthetic: Sequence[Tensor]) -> Tensor:
    """Σ 1 - cos(real row, synthetic row) over the output rows of all weight tensors.

    A tensor of shape (out, …) has a row for each output. Tensors whose rows are single numbers
    (biases, the gains of norms) have no direction to compare and are left out. A row of zeros
    counts as 1, or as 0 if it is zero in both gradients, and nothing pulls on it.

    Args:
        real: the gradient of each weight tensor on real data.
        synthetic: the same on synthetic data.

    >>> weight = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> gradient_distance([weight], [torch.tensor([[2.0, 0.0], [0.0, -3.0]])])  # 0 + 2
    tensor(2.)
    """
    pairs = zip(real, synthetic, strict=True)
    rows = [(a.flatten(1), b.flatten(1)) for a, b in pairs if a.dim() > 1 and a[0].numel() > 1]
    return torch.stack([_row_distance(a, b) for a, b in rows]).sum()


def _row_distance(real: Tensor, synthetic: Tensor) -> Tensor:
    """Shape: (out, rest), (out, rest) -> ()"""
    a, b = real.norm(dim=1), synthetic.norm(dim=1)
    undefined, equal = a * b == 0, a + b == 0
    cosine = (real * synthetic).sum(1) / torch.where(undefined, 1, a * b)
    return (1 - torch.where(undefined, equal.to(cosine), cosine)).sum()


class GradientMatcher:
    """Dataset condensation (DC), with image-text pairs in the place of labelled images.

    DC trains a network on the synthetic data and, all along the way, pulls the gradient on
    synthetic data towards the gradient on real data. Each call is one step of that: it compares
    the gradients of one synthetic and one real batch, and then trains the network on the synthetic
    batch with the inner rates. After ``matching.steps`` calls a new network is drawn. DC compares
    class by class; pairs have no classes, so batches are drawn from everything. The inner rates are
    not learned.

    Paper: `Dataset Condensation with Gradient Matching <https://arxiv.org/abs/2006.05929>`_

    Args:
        setting: the real pairs, the dual encoder, the loss whose gradients are matched.
        options: how to match.
    """

    Options = GradientOptions

    def __init__(self, setting: Setting, options: GradientOptions) -> None:
        self.setting, self.options = setting, options
        self.flat, self.loss = setting.flat, setting.loss
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the distance to images, texts and similarity; train the network.

        Args:
            synthetic: the set being learned.
            generator: draws the network at the start of an episode, and both batches.

        Returns:
            The distance between the two gradients: from 0 to twice the number of weight rows.
        """
        theta, step = self._network(synthetic.images, generator)
        index = next(synthetic.passes(self.options.batch_size, generator))
        index = index.to(synthetic.images.device)
        inputs = self.flat.model.freeze(synthetic.images[index])
        block = synthetic.similarity(index).to(inputs.dtype)
        batch = Batch(inputs, synthetic.texts[index], block)
        target = self._gradient(theta, self._real_batch(generator))
        gradient = self._gradient(theta, batch, create_graph=True)
        distance = gradient_distance(self.flat.tensors(target), self.flat.tensors(gradient))
        add_gradients(distance, synthetic)
        self._train(theta, gradient.detach(), synthetic.rates.detach(), step)
        return distance.detach()

    def _network(self, like: Tensor, generator: torch.Generator) -> tuple[Tensor, int]:
        """θ and how many steps it was trained; a new network where an episode starts."""
        step = int(self.state["step"]) if self.state else 0
        if step == 0:
            theta = self.flat.flatten(self.setting.model(draw_seed(generator)))
        else:
            theta = self.state["theta"]
        return theta.to(like).detach().requires_grad_(), step

    def _train(self, theta: Tensor, gradient: Tensor, rates: Tensor, step: int) -> None:
        """θ ← θ - η g, with the rate of each side."""
        sides = zip(rates, gradient.split(self.flat.sides), strict=True)
        moved = theta.detach() - torch.cat([rate * part for rate, part in sides])
        following = torch.tensor((step + 1) % self.options.steps)
        self.state = {"theta": moved, "step": following}

    def _real_batch(self, generator: torch.Generator) -> Batch:
        """Real pairs: every image belongs to its own caption and to no other."""
        inputs, texts = self.setting.real_batch(generator, self.options.real_batch_size)
        similarity = torch.eye(len(inputs), dtype=inputs.dtype, device=inputs.device)
        return Batch(inputs, texts, similarity)

    def _gradient(self, theta: Tensor, batch: Batch, create_graph: bool = False) -> Tensor:
        """g = ∇θ ℓ(θ, batch)"""
        loss = self.loss(self.flat(theta, batch.inputs, batch.texts), batch.similarity)
        return torch.autograd.grad(loss, theta, create_graph=create_graph)[0]
