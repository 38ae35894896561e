"""One batch over all ranks: each embeds its part, and all compute with the embeddings of all.

Two linear maps and their derivatives, of any order. A tensor is either *whole*, the same on all
ranks, or a *part*, one rank's rows. Derivatives in what is whole are whole, too: the same on all
ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from lors.system import ranks

__all__ = ["joined_rows", "my_rows", "replicated"]

Rows = TypeVar("Rows", Tensor, np.ndarray)
Map = Callable[[Tensor], Tensor]


def my_rows(rows: Rows) -> Rows:
    """This rank's part of rows that all ranks know; the first ranks get one more."""
    each, more = divmod(len(rows), ranks.size())
    start = ranks.rank() * each + min(ranks.rank(), more)
    return rows[start : start + each + (ranks.rank() < more)]


def joined_rows(part: Tensor) -> Tensor:
    """The rows of all ranks in order, as ``my_rows`` divides them. Shape: (m_r, d) -> (m, d)"""
    return _JOINED(part)


def replicated(whole: Tensor) -> Tensor:
    """The same numbers, of which each rank uses a copy for its part of the work."""
    return _REPLICATED(whole)


def _gather_rows(part: Tensor) -> Tensor:
    """Part to whole: the rows of all ranks."""
    sizes = [int(size) for size in ranks.gather_tensors(torch.tensor([len(part)]))]
    padded = part.new_zeros((max(sizes), *part.shape[1:]))
    padded[: len(part)] = part
    found = ranks.gather_tensors(padded)
    return torch.cat([rows[:size] for rows, size in zip(found, sizes, strict=True)])


def _take_rows(whole: Tensor) -> Tensor:
    """Whole to part: the rows of this rank."""
    return my_rows(whole).clone()


def _sum(part: Tensor) -> Tensor:
    """Part to whole: the sum over all ranks."""
    whole = part.clone(memory_format=torch.contiguous_format)
    ranks.all_reduce([whole])
    return whole


def _differentiable(there: Map, back: Map) -> Map:
    """A linear map with derivatives of any order, given its adjoint."""

    class There(Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return there(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return _differentiable(back, there)(gradient)

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor) -> Any:
            return There.apply(tangent)

    return There.apply


_JOINED = _differentiable(_gather_rows, _take_rows)
_REPLICATED = _differentiable(torch.clone, _sum)
