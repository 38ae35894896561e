"""One batch over all ranks: each embeds its part, and all compute with the embeddings of all.

Three linear maps and their derivatives, of any order. A tensor is either *whole*, the same on all
ranks, or a *part*, one rank's rows. Derivatives in what is whole are whole, too: the same on all
ranks.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from lors import ranks

__all__ = ["joined_rows", "my_rows", "replicated"]

Rows = TypeVar("Rows", Tensor, np.ndarray)


def my_rows(rows: Rows) -> Rows:
    """This rank's part of rows that all ranks know; the first ranks get one more."""
    each, more = divmod(len(rows), ranks.size())
    start = ranks.rank() * each + min(ranks.rank(), more)
    return rows[start : start + each + (ranks.rank() < more)]


def joined_rows(part: Tensor) -> Tensor:
    """The rows of all ranks in order, as ``my_rows`` divides them. Shape: (m_r, d) -> (m, d)"""
    return _Joined.apply(part)


def replicated(whole: Tensor) -> Tensor:
    """The same numbers, of which each rank uses a copy for its part of the work."""
    return _Replicated.apply(whole)


class _Linear(Function):
    """A linear map, which needs to remember nothing for its derivatives."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass


class _Joined(_Linear):
    """Part to whole: the rows of all ranks."""

    @staticmethod
    def forward(part: Tensor) -> Tensor:
        sizes = [int(size) for size in ranks.gather_tensors(torch.tensor([len(part)]))]
        padded = part.new_zeros((max(sizes), *part.shape[1:]))
        padded[: len(part)] = part
        found = ranks.gather_tensors(padded)
        return torch.cat([rows[:size] for rows, size in zip(found, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Mine.apply(gradient)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Any:
        return _Joined.apply(tangent)


class _Mine(_Linear):
    """Whole to part: the rows of this rank."""

    @staticmethod
    def forward(whole: Tensor) -> Tensor:
        return my_rows(whole).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Joined.apply(gradient)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Any:
        return _Mine.apply(tangent)


class _Replicated(_Linear):
    """Whole to part: all of it, on each rank."""

    @staticmethod
    def forward(whole: Tensor) -> Tensor:
        return whole.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Summed.apply(gradient)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Any:
        return _Replicated.apply(tangent)


class _Summed(_Linear):
    """Part to whole: the sum over all ranks."""

    @staticmethod
    def forward(part: Tensor) -> Tensor:
        whole = part.clone(memory_format=torch.contiguous_format)
        ranks.total([whole])
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Replicated.apply(gradient)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Any:
        return _Summed.apply(tangent)
