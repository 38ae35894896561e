"""Hindsight: a set is judged by the network that training on it makes."""

from __future__ import annotations

from itertools import islice

import torch
from torch import Tensor

from lors.config.matchers import HindsightOptions
from lors.losses import soft_nce
from lors.matching.matcher import add_gradients
from lors.matching.teachers import Teachers, noised
from lors.matching.through_trunks import ThroughTrunks
from lors.matching.unroll import train_differentiably
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.seeding import draw_seed
from lors.system.transfers import moved_together

__all__ = ["HindsightMatcher"]


class HindsightMatcher:
    """The matcher of our own method.

    Every iteration draws a fresh network, trains it on the set for the first ``matching.steps``
    steps of the protocol, with its batches, momentum, weight decay and schedule, and lets it
    compare a real batch, to which noise may be added. The objective is how far it is from what all
    experts together think of the same batch; its gradient goes through every step of the training.

    Trajectory matching asks where the weights of one expert went. Here only what the network does
    counts, so the experts can teach together, and their errors cancel.

    Args:
        setting: the experts to learn from, the real pairs, the loss of the inner steps.
        options: how to match.
    """

    Options = HindsightOptions

    def __init__(self, setting: Setting, options: HindsightOptions) -> None:
        self.setting, self.options = setting, options
        self.teachers = Teachers(setting)
        self.state: dict[str, Tensor] = {}
        trains = setting.config.encoder.scope != "heads"
        self.trunks = ThroughTrunks(setting, options, self.teachers) if trains else None

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the objective to every part that requires one.

        Args:
            synthetic: the set being learned.
            generator: draws the network, the batches, the real pairs and the noise.

        Returns:
            The objective: the cross entropy of the network's and the teachers' retrieval.
        """
        setting, protocol = self.setting, self.setting.config.evaluate
        model = setting.model(draw_seed(generator))
        order = synthetic.in_protocol(protocol, generator)
        epoch = -(-len(synthetic) // protocol.batch_size)
        steps = list(islice(order, min(self.options.steps, epoch * protocol.epochs)))
        pace = [protocol.pace(step // epoch) for step in range(len(steps))]
        if self.trunks is not None:
            return self.trunks.backward(model, synthetic, steps, pace, generator)
        used = torch.cat(steps).unique()
        sides = train_differentiably(
            model,
            synthetic.gather([used], lambda index: model.freeze(synthetic.images[index]))[0],
            moved_together([torch.searchsorted(used, index) for index in steps], setting.device),
            setting.loss,
            [synthetic.rates * factor for factor in pace],
            protocol.momentum,
            protocol.weight_decay,
        )
        drawn = setting.real_batch(generator, self.options.real_batch_size)
        real = [noised(part, self.options.noise, generator) for part in drawn]
        targets = self.teachers.cosines(*real) / self.options.teacher_temperature
        outputs = [side(part) for side, part in zip(sides, real, strict=True)]
        objective = soft_nce(model.logits(*outputs), targets)
        add_gradients(objective, synthetic)
        return objective.detach()
