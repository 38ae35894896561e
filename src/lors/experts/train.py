"""Training experts on the real data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.config import DataConfig, ExpertsConfig
from lors.encoders import DualEncoder, EncodedSplit, FlatModel
from lors.encoders.dropout import dropping
from lors.losses import LOSSES
from lors.system import ranks
from lors.training import Batch, sgd, train_step

__all__ = ["Snapshot", "train_expert"]


class Snapshot(NamedTuple):
    """An expert after an epoch.

    Args:
        theta: its parameters. Shape: (P,)
        learned: whether it learned each pair in that epoch, that is, whether the pair's caption was
            retrieved first in its batch. Where an epoch shows each caption of an image, the last
            one counts. Shape: (M,)
    """

    theta: Tensor
    learned: np.ndarray


def train_expert(
    model: DualEncoder,
    real: EncodedSplit,
    config: ExpertsConfig,
    data: DataConfig,
    expert: int,
    begun: Sequence[Snapshot] = (),
) -> Iterator[Snapshot]:
    """Train one expert with plain SGD, at the same rates throughout unless it has a schedule.

    Args:
        model: freshly initialised; it is trained in place.
        real: the training split.
        config: epochs, batch size, loss and learning rate.
        data: how an epoch shows captions and whether images are augmented.
        expert: which one; draws the order of the data.
        begun: the snapshots of an interrupted training run, to go on from; of a divided model,
            those of rank 0 count, and the others give as many empty ones.

    Yields:
        T + 1 snapshots: at the start, with nothing learned, and after every epoch.
    """
    flat = FlatModel(model)
    optimizer = sgd(model, config.rates())
    begun = begun or [Snapshot(flat.flatten(model).cpu(), np.zeros(len(real), dtype=bool))]
    yield from begun
    parameter, loss = next(model.parameters()), LOSSES[config.loss]
    part = (ranks.rank(),) if model.divided else ()
    if len(begun[-1].theta):
        flat.load(begun[-1].theta.to(parameter), model)
    if model.divided:
        ranks.broadcast(model.parameters())
    for epoch in range(len(begun) - 1, config.epochs):
        for group, rate in zip(optimizer.param_groups, config.rates(), strict=True):
            group["lr"] = rate * config.pace(epoch)
        learned = np.zeros(len(real), dtype=bool)
        shown, right = [], []
        keys = (config.seed, "expert", expert, epoch)
        epoch_pairs = real.epoch(
            model,
            config.batch_size,
            data.captions,
            data.augment,
            *keys,
            drop_last=config.drop_last,
        )
        for step, (index, inputs, texts) in enumerate(epoch_pairs):
            similarity = torch.eye(len(index), dtype=parameter.dtype, device=parameter.device)
            batch = Batch(inputs, texts, similarity)
            with dropping(*keys, step, *part):
                retrieved = train_step(model, optimizer, batch, loss, config.autocast).argmax(1)
            shown.append(index)
            right.append(retrieved == torch.arange(len(index), device=inputs.device))
        learned[np.concatenate(shown)] = torch.cat(right).cpu().numpy()
        yield Snapshot(flat.flatten(model).cpu(), learned)
