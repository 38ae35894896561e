"""Contrastive training: the one step that experts and evaluation share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD

from lors.encoders import DualEncoder
from lors.encoders.dropout import drops
from lors.losses import Loss
from lors.system import ranks
from lors.system.cores import check_wanted
from lors.system.errors import out_of_memory
from lors.system.memory import sparingly
from lors.system.transfers import mark_step

__all__ = ["Batch", "sgd", "train", "train_step"]


class Batch(NamedTuple):
    """What one step trains on.

    Args:
        inputs: images, or their features where the trunk is frozen. Shape: (m, …)
        texts: text embeddings. Shape: (m, text_dim)
        similarity: S of the batch. Shape: (m, m)
    """

    inputs: Tensor
    texts: Tensor
    similarity: Tensor

    def leaves(self) -> Batch:
        """The same numbers apart from where they come from; what requires gradients still does."""
        return Batch(*(t.detach().requires_grad_(t.requires_grad) for t in self))

    def gradients(self, found: Iterable[Tensor]) -> Batch:
        """The next found gradient for each tensor that requires one, and zero for the others."""
        rest = iter(found)
        return Batch(*(next(rest) if t.requires_grad else torch.zeros_like(t) for t in self))


def sgd(
    model: DualEncoder,
    rates: tuple[float, float],
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> SGD:
    """SGD with one learning rate for the image side and one for the text side."""
    image, text = model.sides()
    groups = [{"params": image, "lr": rates[0]}, {"params": text, "lr": rates[1]}]
    return SGD(groups, momentum=momentum, weight_decay=weight_decay)


def train_step(
    model: DualEncoder, optimizer: SGD, batch: Batch, loss: Loss, autocast: bool = False
) -> Tensor:
    """One optimiser step; returns the logits before it. Shape: (m, m)

    A batch of a divided model holds this rank's part of the images and texts, and the whole S.
    Where memory runs out, activations are computed again instead of being kept: the same bits.

    Args:
        model: trained in place; by its compiler, if it has one that works.
        optimizer: of its parameters.
        batch: what to train on.
        loss: the contrastive loss.
        autocast: whether the network runs in bfloat16 where that is safe.
    """
    check_wanted()

    def logits_and_gradients(forward: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        optimizer.zero_grad()
        device = batch.similarity.device.type
        with torch.autocast(device, torch.bfloat16) if autocast else nullcontext():
            logits = forward(batch.inputs, batch.texts)
        logits = logits.float() if autocast else logits
        loss(logits, batch.similarity).backward()
        return logits.detach()

    def step() -> Tensor:
        compiler = model.compiler
        if compiler is not None and not model.divided and compiler.serves(model):
            try:
                return logits_and_gradients(partial(compiler, model))
            except Exception as error:  # of many kinds, as many as there are compilers
                if out_of_memory(error):
                    raise
                compiler.give_up(error)
        return logits_and_gradients(model)

    alone = not model.divided and not drops(model)  # else ranks wait, or masks are drawn twice
    logits = sparingly(step, lambda: alone and model.recompute())
    if model.divided:
        ranks.all_reduce([p.grad for side in model.sides() for p in side if p.grad is not None])
    optimizer.step()
    mark_step(logits.device)
    return logits


def train(model: DualEncoder, optimizer: SGD, batches: Iterable[Batch], loss: Loss) -> None:
    """One optimiser step per batch."""
    for batch in batches:
        train_step(model, optimizer, batch, loss)
