"""Dropout by names: the same keys drop the same values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import torch
from torch import Tensor, nn

from lors.system.seeding import generator

__all__ = ["Dropout", "dropping", "drops"]


class _Source:
    """The generator of masks, made when the first is drawn."""

    def __init__(self, *keys: int | str) -> None:
        self._keys = keys

    @cached_property
    def generator(self) -> torch.Generator:
        return generator(*self._keys)


_SOURCE: ContextVar[_Source | None] = ContextVar("dropout", default=None)


@contextmanager
def dropping(*keys: int | str) -> Iterator[None]:
    """Inside the block, every ``Dropout`` is at work, with masks drawn by the keys.

    So two passes in blocks of the same keys have the same masks, and a resumed run has those of
    one that was not interrupted.

    >>> with dropping("first"):
    ...     Dropout(0.5)(torch.ones(6))
    tensor([0., 2., 0., 2., 0., 2.])

    Args:
        keys: draw the masks.
    """
    token = _SOURCE.set(_Source(*keys))
    try:
        yield
    finally:
        _SOURCE.reset(token)


class Dropout(nn.Dropout):
    """Dropout with masks from ``dropping``. Outside of it, torch's own.

    A dual encoder stays in evaluation mode, where torch's own does nothing.

    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, values: Tensor) -> Tensor:
        source = _SOURCE.get()
        if source is None:
            return super().forward(values)
        kept = torch.rand(values.shape, generator=source.generator) >= self.p
        return values * kept.to(values.device, values.dtype) / (1 - self.p)


def drops(module: nn.Module) -> bool:
    """Whether a network has dropout that ``dropping`` sets to work.

    >>> drops(nn.Linear(2, 2))
    False
    """
    return any(isinstance(part, Dropout) for part in module.modules())
