"""Hindsight where a trunk trains along: only the parameters after each step are kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from lors.config.matchers import HindsightOptions
from lors.encoders import DualEncoder
from lors.losses import soft_nce
from lors.matching.fitting import trial_derivative
from lors.matching.matcher import add_batch_gradients
from lors.matching.meta_gradient import Inner, exact
from lors.matching.teachers import Teachers, noised
from lors.matching.trajectory import inner_loss
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting

__all__ = ["ThroughTrunks"]


class ThroughTrunks:
    """The objective of Hindsight, and its gradient by the adjoint recursion.

    Autograd would keep the graphs of all steps, of which those of a trunk do not fit into memory.
    Noise is added to texts alone: what teachers see in the training images is computed once.

    Args:
        setting: the real pairs, the loss of the inner steps, the protocol.
        options: how to match.
        teachers: what the network should retrieve like.
    """

    def __init__(self, setting: Setting, options: HindsightOptions, teachers: Teachers) -> None:
        self.setting, self.options, self.teachers = setting, options, teachers
        self.loss = partial(inner_loss, setting.flat, setting.loss, False)
        theta = setting.flat.flatten(setting.model("derivative"))
        direction = theta - setting.flat.flatten(teachers.networks[0])
        self.derivative = trial_derivative(setting, self.loss, theta, direction, with_theta=True)

    def backward(
        self,
        model: DualEncoder,
        synthetic: SyntheticPairs,
        steps: Sequence[Tensor],
        pace: Sequence[float],
        generator: torch.Generator,
    ) -> Tensor:
        """Add the gradient of the objective to every part that requires one; return the objective.

        Args:
            model: where training starts.
            synthetic: the set being learned.
            steps: the indices of each step's batch. Shape of each: (m,)
            pace: what the learned rates are multiplied by at each step.
            generator: draws the real pairs and the noise.
        """
        setting, options, flat = self.setting, self.options, self.setting.flat
        protocol = setting.config.evaluate
        images, captions, inputs = setting.drawn_real(generator, options.real_batch_size)
        texts = setting.real["train"].captions(captions, model)
        texts = noised(texts, options.noise, generator)
        seen = inputs if setting.config.data.augment else images
        targets = self.teachers.cosines(seen, texts) / options.teacher_temperature

        def objective(theta: Tensor) -> Tensor:
            return soft_nce(flat(theta, inputs, texts), targets)

        batches = synthetic.gather(steps, lambda index: model.freeze(synthetic.images[index]))
        found = exact(
            Inner(
                self.loss,
                flat.flatten(model),
                batches,
                synthetic.rates,
                flat.sides,
                objective,
                self.derivative,
                momentum=protocol.momentum,
                weight_decay=protocol.weight_decay,
                pace=pace,
            )
        )
        add_batch_gradients(found.batches, found.rates, batches, synthetic)
        return found.objective
