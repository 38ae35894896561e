"""Tensors from the CPU to a device, without waiting for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["moved", "moved_together"]


def moved(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor of the CPU on the device and of the type of another; a GPU is not waited for.

    >>> moved(torch.tensor([1, 2]), torch.zeros(1))
    tensor([1., 2.])
    """
    if like.is_cuda and tensor.device.type == "cpu":
        return tensor.pin_memory().to(like, non_blocking=True)
    return tensor.to(like)


def moved_together(indices: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Indices on a device, all in one transfer. Shape of each: (m,)

    >>> moved_together([torch.tensor([1, 2]), torch.tensor([3])], torch.device("cpu"))
    [tensor([1, 2]), tensor([3])]
    """
    if all(index.device == device for index in indices):
        return list(indices)
    every = torch.cat(list(indices))
    there = moved(every, every.new_empty(0, device=device))
    return list(there.split([len(index) for index in indices]))
