"""Training experts on the real data with InfoNCE."""

from __future__ import annotations

import torch
from torch import Tensor

from lors.config import DataConfig, ExpertsConfig
from lors.encoders import DualEncoder, EncodedSplit, FlatModel
from lors.losses import nce
from lors.training import Batch, sgd, train

__all__ = ["train_expert"]


def train_expert(
    model: DualEncoder, real: EncodedSplit, config: ExpertsConfig, data: DataConfig, expert: int
) -> Tensor:
    """Train one expert with plain SGD.

    Args:
        model: freshly initialised; it is trained in place.
        real: the training split.
        config: epochs, batch size and learning rate.
        data: how an epoch shows captions and whether images are augmented.
        expert: which one; draws the order of the data.

    Returns:
        θ at the start and after every epoch. Shape: (T + 1, P)
    """
    flat = FlatModel(model)
    optimizer = sgd(model, (config.rate, config.rate))
    trajectory = [flat.flatten(model).cpu()]
    for epoch in range(config.epochs):
        keys = (config.seed, "expert", expert, epoch)
        pairs = real.epoch(model, config.batch_size, data.captions, data.augment, *keys)
        batches = (Batch(x, y, torch.eye(len(x), device=x.device, dtype=x.dtype)) for x, y in pairs)
        train(model, optimizer, batches, nce)
        trajectory.append(flat.flatten(model).cpu())
    return torch.stack(trajectory)
