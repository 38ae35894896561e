"""Training experts on the real data with InfoNCE."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lors.config import DataConfig, ExpertsConfig
from lors.encoders import DualEncoder, EncodedSplit, FlatModel
from lors.losses import nce
from lors.training import Batch, sgd, train_step

__all__ = ["train_expert"]


def train_expert(
    model: DualEncoder, real: EncodedSplit, config: ExpertsConfig, data: DataConfig, expert: int
) -> tuple[Tensor, np.ndarray]:
    """Train one expert with plain SGD.

    Args:
        model: freshly initialised; it is trained in place.
        real: the training split.
        config: epochs, batch size and learning rate.
        data: how an epoch shows captions and whether images are augmented.
        expert: which one; draws the order of the data.

    Returns:
        θ at the start and after every epoch, of shape (T + 1, P); and whether each pair was learned
        at each epoch, that is, its caption retrieved first in its batch, of shape (T, M). Where an
        epoch shows each caption of an image, the last one counts.
    """
    flat = FlatModel(model)
    optimizer = sgd(model, config.rates())
    trajectory = [flat.flatten(model).cpu()]
    learned = np.zeros((config.epochs, len(real)), dtype=bool)
    for epoch in range(config.epochs):
        keys = (config.seed, "expert", expert, epoch)
        epoch_pairs = real.epoch(model, config.batch_size, data.captions, data.augment, *keys)
        for index, inputs, texts in epoch_pairs:
            batch = Batch(inputs, texts, torch.eye(len(index)).to(inputs))
            retrieved = train_step(model, optimizer, batch, nce).argmax(1)
            learned[epoch, index] = retrieved.cpu().numpy() == np.arange(len(index))
        trajectory.append(flat.flatten(model).cpu())
    return torch.stack(trajectory), learned
