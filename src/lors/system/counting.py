"""What work would take of a device: bytes that are alive, bytes that are moved, operations."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

__all__ = ["Counts", "PeakBytes", "counted"]


class Counts(NamedTuple):
    """What some work does, whatever device it runs on.

    Args:
        memory: the most bytes that its tensors take at a time, with those that it is given.
        products: floating-point operations of matrix products and convolutions, two for each
            multiplication and addition.
        moved: bytes that all its operations read and write.
        calls: how many operations there are.
    """

    memory: float
    products: float
    moved: float
    calls: float


class PeakBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive, and the most there ever were.

    >>> with PeakBytes() as counting:
    ...     x = torch.ones(50).double()
    >>> counting.peak, counting.now  # float32 and float64 at a time, then float64 alone
    (600, 400)

    Args:
        inputs: whether tensors that operations are given count, too.
        limit: bytes beyond which it raises ``torch.OutOfMemoryError``, as an allocator does.
    """

    def __init__(self, inputs: bool = False, limit: float | None = None) -> None:
        super().__init__()
        self.now = self.peak = self.moved = self.calls = self.products = 0
        self.inputs, self.limit = inputs, limit
        self.alive: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        given = _tensors((args, kwargs)) if self.inputs else []
        for tensor in given:
            self._count(tensor.untyped_storage())
        out = func(*args, **(kwargs or {}))
        made = _tensors(out)
        for tensor in made:
            self._count(tensor.untyped_storage())
        if not func.is_view and func.namespace == "aten":  # others only ask, as for a device
            self.calls += 1
            self.moved += sum(tensor.nbytes for tensor in (*given, *made))
        if (products := flop_registry.get(func.overloadpacket)) is not None:
            self.products += products(*args, **(kwargs or {}), out_val=out)
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self.alive:
            return
        size = storage.nbytes()
        if self.limit is not None and self.now + size > self.limit:
            raise torch.OutOfMemoryError(
                f"out of memory: {self.now:,} of {self.limit:,} bytes are taken, and {size:,} more "
                "are wanted"
            )
        self.alive.add(storage._cdata)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._release, storage._cdata, size)

    def _release(self, key: int, size: int) -> None:
        self.alive.discard(key)
        self.now -= size


def counted(work: Callable[[], object]) -> Counts:
    """Do some work and count it.

    >>> a = torch.ones(2, 3)
    >>> counted(lambda: a @ a.T)
    Counts(memory=40, products=24, moved=64, calls=1)
    """
    with PeakBytes(inputs=True) as tensors:
        work()
    return Counts(tensors.peak, tensors.products, tensors.moved, tensors.calls)


def _tensors(values: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
