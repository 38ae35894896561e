"""Networks with kinks made smooth: every ReLU and pooling keeps to the branch it took before.

A difference of gradients at two places is wrong wherever a kink lies between them, and between two
places of a large network many do. The derivative of autograd knows no kinks: it is that of the
branches that were taken. So the first forward pass notes the branches, one byte for each output of
such an operation, and the second takes the same ones, wherever its numbers lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["Branches", "noted", "taken"]

Branches = list[Tensor]
"""Which branch each operation took, in the order of the forward pass."""


class Kink(NamedTuple):
    """An operation with kinks.

    Args:
        branch: what to note of its input; takes what the operation takes.
        value: the branch's value elsewhere; takes what was noted, then the same.
    """

    branch: Callable[..., Tensor]
    value: Callable[..., Tensor]


@contextmanager
def noted(branches: Branches) -> Iterator[None]:
    """Note the branches of the operations that run inside."""
    with _Noting(branches):
        yield


@contextmanager
def taken(branches: Branches) -> Iterator[None]:
    """Let the operations that run inside, the same as before, take the branches that were noted."""
    with _Taking(branches):
        yield


class _Noting(TorchFunctionMode):
    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self.branches = branches

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in KINKS:
            with torch.no_grad():
                self.branches.append(KINKS[func].branch(*args, **kwargs))
        return func(*args, **kwargs)


class _Taking(TorchFunctionMode):
    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self.branches = iter(branches)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in KINKS:
            return func(*args, **kwargs)
        value = KINKS[func].value(next(self.branches), *args, **kwargs)
        if func in IN_PLACE or kwargs.get("inplace"):
            return args[0].copy_(value)  # others may read the input
        return value


def _relu(x: Tensor, inplace: bool = False) -> Tensor:
    return x > 0


def _relu_value(positive: Tensor, x: Tensor, inplace: bool = False) -> Tensor:
    return x * positive


def _leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return x > 0


def _leaky_relu_value(
    positive: Tensor, x: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    return torch.where(positive, x, negative_slope * x)


def _hardtanh(
    x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """0 below, 1 between, 2 above."""
    return (x > min_val).byte() + (x >= max_val).byte()


def _hardtanh_value(
    where: Tensor, x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    return torch.where(where == 1, x, min_val * (where == 0) + max_val * (where == 2))


def _relu6(x: Tensor, inplace: bool = False) -> Tensor:
    return _hardtanh(x, 0.0, 6.0)


def _relu6_value(where: Tensor, x: Tensor, inplace: bool = False) -> Tensor:
    return _hardtanh_value(where, x, 0.0, 6.0)


def _hard(x: Tensor, inplace: bool = False) -> Tensor:
    return _hardtanh(x, -3.0, 3.0)


def _hardswish_value(where: Tensor, x: Tensor, inplace: bool = False) -> Tensor:
    return torch.where(where == 1, x * (x + 3) / 6, x * (where == 2))


def _hardsigmoid_value(where: Tensor, x: Tensor, inplace: bool = False) -> Tensor:
    return torch.where(where == 1, x / 6 + 0.5, (where == 2).to(x))


def _max_pool2d(x: Tensor, *args: Any, return_indices: bool = False, **kwargs: Any) -> Tensor:
    """Which input each output is."""
    return F.max_pool2d_with_indices(x, *args, **kwargs)[1]


def _max_pool2d_value(which: Tensor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.flatten(-2).gather(-1, which.flatten(-2)).view(which.shape)


def _table() -> dict[Any, Kink]:
    relu = Kink(_relu, _relu_value)
    leaky = Kink(_leaky_relu, _leaky_relu_value)
    hardtanh = Kink(_hardtanh, _hardtanh_value)
    pooling = Kink(_max_pool2d, _max_pool2d_value)
    relus = (F.relu, torch.relu, Tensor.relu, F.relu_, torch.relu_, Tensor.relu_)
    return {
        **dict.fromkeys(relus, relu),
        **dict.fromkeys((F.leaky_relu, F.leaky_relu_), leaky),
        **dict.fromkeys((F.hardtanh, F.hardtanh_), hardtanh),
        F.relu6: Kink(_relu6, _relu6_value),
        F.hardswish: Kink(_hard, _hardswish_value),
        F.hardsigmoid: Kink(_hard, _hardsigmoid_value),
        **dict.fromkeys((torch.max_pool2d, F.max_pool2d), pooling),
    }


KINKS = _table()
"""The operations with kinks that are known, by the functions that networks call."""

IN_PLACE = {F.relu_, torch.relu_, Tensor.relu_, F.leaky_relu_, F.hardtanh_}
