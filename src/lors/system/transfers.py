"""Tensors to a device without waiting for it, and when it should begin."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["mark_step", "moved", "moved_together"]


def moved(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor of the CPU on the device and of the type of another; a GPU is not waited for.

    >>> moved(torch.tensor([1, 2]), torch.zeros(1))
    tensor([1., 2.])
    """
    if like.is_cuda and tensor.device.type == "cpu":
        return tensor.pin_memory().to(like, non_blocking=True)
    return tensor.to(like)


def moved_together(indices: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Indices on a device, if it can in one transfer. Shape of each: (m,)

    >>> moved_together([torch.tensor([1, 2]), torch.tensor([3])], torch.device("cpu"))
    [tensor([1, 2]), tensor([3])]
    """
    if all(index.device == device for index in indices):
        return list(indices)
    if device.type == "xla":  # torch_xla 2.9 aborts when it selects by a part of a tensor
        return [index.to(device) for index in indices]
    every = torch.cat(list(indices))
    there = moved(every, every.new_empty(0, device=device))
    return list(there.split([len(index) for index in indices]))


def mark_step(device: torch.device) -> None:
    """Let XLA compute what was asked of it so far; other devices have begun already.

    XLA compiles all operations between two marks as one program. With a mark in every step it
    meets the same program again and again, and compiles it once.
    """
    if device.type == "xla":
        importlib.import_module("torch_xla").sync()
