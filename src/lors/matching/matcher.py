"""What every matcher is given, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lors.config import Config
from lors.encoders import DualEncoder, EncodedSplit, FlatModel
from lors.experts import TrajectoryStore
from lors.losses import Loss
from lors.sets.synthetic import SyntheticPairs
from lors.system.seeding import global_seed
from lors.training import Batch

__all__ = ["Matcher", "Setting", "add_gradients", "draw_seed", "whole_set"]


@dataclass(frozen=True)
class Setting:
    """What a matcher may build on.

    Args:
        config: the whole configuration.
        flat: the dual encoder as a function of θ.
        loss: the contrastive loss.
        real: the training split.
        experts: trains the experts that are missing and gives them all.
        model: a dual encoder with initial weights drawn by the keys.
        say: tells the user what they should know.
        data_parallel: whether the ranks divide every batch. Each then adds a part of the gradients,
            whose sum over the ranks is the whole, and returns a part of the loss.
    """

    config: Config
    flat: FlatModel
    loss: Loss
    real: EncodedSplit
    experts: Callable[[], TrajectoryStore]
    model: Callable[..., DualEncoder]
    say: Callable[[str], None] = lambda text: None
    data_parallel: bool = False

    def real_batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Drawn real pairs, each with one drawn caption: ``matching.real_batch_size`` of them.

        Returns:
            What the trainable parts of the image and the text side take. Shapes: (m, …), (m, …)
        """
        wanted = self.config.matching.real_batch_size or self.config.experts.batch_size
        size = min(wanted, len(self.real))
        seed = draw_seed(generator)
        rng = np.random.default_rng(seed)
        images = rng.choice(len(self.real), size, replace=False)
        captions = self.real.draw_captions(images, rng)
        model = self.flat.model
        with global_seed(seed), torch.no_grad():
            inputs = self.real.inputs(images, model, self.config.data.augment)
        return inputs, self.real.captions(captions, model)


class Matcher(Protocol):
    """Compares synthetic data with real data.

    Args:
        state: what continuing a run needs beside the synthetic pairs; empty for most matchers. A
            checkpoint saves and restores it.
        learns_rates: whether the set learns its learning rates; if not, they are tuned on val.
    """

    state: dict[str, Tensor]
    learns_rates: bool

    def __init__(self, setting: Setting) -> None: ...

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        """Add the gradient of the matching loss to every part that requires one; return the loss.

        All randomness comes from the generator.
        """
        ...


def draw_seed(generator: torch.Generator) -> int:
    """A seed for what offers no generator argument."""
    return int(torch.randint(2**62, (), generator=generator))


def whole_set(synthetic: SyntheticPairs, model: DualEncoder) -> Batch:
    """All synthetic pairs as one batch of what the trainable parts take, differentiable."""
    every = torch.arange(len(synthetic), device=synthetic.images.device)
    return synthetic.gather([every], lambda index: model.freeze(synthetic.images[index]))[0]


def add_gradients(objective: Tensor, synthetic: SyntheticPairs) -> None:
    """Add the gradient of an objective to every part that requires one and that it depends on.

    The parts are named: without that, gradients in the network would be computed too.
    """
    learned = [parameter for parameter in synthetic.parameters() if parameter.requires_grad]
    if learned and objective.requires_grad:
        torch.autograd.backward(objective, inputs=learned)
