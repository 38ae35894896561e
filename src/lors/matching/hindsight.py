"""Hindsight: a set is judged by the network that training on it makes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor

from lors.losses import soft_nce
from lors.matching.matcher import Setting, draw_seed
from lors.matching.teachers import Teachers
from lors.matching.unroll import train_differentiably
from lors.synthetic import SyntheticPairs
from lors.training import Batch

__all__ = ["HindsightMatcher"]


class HindsightMatcher:
    """The matcher of our own method.

    Every iteration draws a fresh network, trains it on the set for ``matching.steps`` steps of the
    protocol, with its batches, momentum and weight decay, and lets it compare a real batch, to
    which noise may be added. The objective is how far it is from what all experts together think of
    the same batch; its gradient goes through every step of the training. Several networks, each
    with a real batch of its own, share one pass through what is frozen.

    Trajectory matching asks where the weights of one expert went. Here only what the network does
    counts, so the experts can teach together, and their errors cancel.

    Args:
        setting: the experts to learn from, the real pairs, the loss of the inner steps.
    """

    learns_rates = True

    def __init__(self, setting: Setting) -> None:
        self.setting, self.config = setting, setting.config.matching
        self.teachers = Teachers(setting)
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        """Add the gradient of the objective to every part that requires one.

        Args:
            synthetic: the set being learned.
            generator: draws networks, batches, real pairs and noise.

        Returns:
            The objective: the cross entropy of the network's and the teachers' retrieval.
        """
        order = synthetic.passes(self.setting.config.evaluate.batch_size, generator)
        runs = [list(islice(order, self.config.steps)) for _ in range(self.config.networks)]
        used = torch.cat([index for steps in runs for index in steps]).unique()
        freeze = self.setting.flat.model.freeze
        whole = synthetic.gather([used], lambda index: freeze(synthetic.images[index]))[0]
        leaves = whole.leaves()
        rates = synthetic.rates.detach().requires_grad_(synthetic.rates.requires_grad)
        total = 0.0
        for steps in runs:
            places = [torch.searchsorted(used, index) for index in steps]
            objective = self._objective(leaves, places, rates, generator) / len(runs)
            objective.backward()
            total += objective.item()
        ends = zip((*whole, synthetic.rates), (*leaves, rates), strict=True)
        found = [(end, leaf.grad) for end, leaf in ends if leaf.grad is not None]
        torch.autograd.backward([end for end, _ in found], [gradient for _, gradient in found])
        return total

    def _objective(
        self, whole: Batch, steps: Sequence[Tensor], rates: Tensor, generator: torch.Generator
    ) -> Tensor:
        """How far a fresh network is from the teachers after these steps on the set."""
        setting, protocol = self.setting, self.setting.config.evaluate
        model = setting.model(draw_seed(generator))
        sides = train_differentiably(
            model, whole, steps, setting.loss, rates, protocol.momentum, protocol.weight_decay
        )
        real = [self._noised(part, generator) for part in setting.real_batch(generator)]
        targets = self.teachers.cosines(*real) / self.config.teacher_temperature
        outputs = [side(part) for side, part in zip(sides, real, strict=True)]
        return soft_nce(model.logits(*outputs), targets)

    def _noised(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        if not self.config.noise or not inputs.is_floating_point():
            return inputs
        noise = torch.randn(inputs.shape, generator=generator, dtype=torch.float32)
        return inputs + self.config.noise * noise.to(inputs)
