"""Networks with kinks made smooth: every ReLU and pooling keeps to the branch it took before.

A difference of gradients at two places is wrong wherever a kink lies between them, and between two
places of a large network many do. The derivative of autograd knows no kinks: it is that of the
branches that were taken. So the first forward pass notes the branches, about one byte for each
output of such an operation, and the second takes the same ones, wherever its numbers lie.

Which operations have kinks is known from ``kinked``. One that is missing there, or hidden in
compiled code, is not kept to: a trial must show that differences are right (``fitting``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lors.matching.kinked import KINKS

__all__ = ["Branches", "BranchesDiffer", "has_kinks", "noted", "taken"]

Branches = list[tuple[Callable[..., Any], tuple[Tensor, ...]]]
"""Each operation with kinks and the branches it took, in the order of the forward pass."""


class BranchesDiffer(RuntimeError):
    """The second pass does not run the operations of the first."""


@contextmanager
def noted(branches: Branches) -> Iterator[None]:
    """Note the branches of the operations that run inside."""
    with _Noting(branches):
        yield


@contextmanager
def taken(branches: Branches) -> Iterator[None]:
    """Let the operations that run inside, the same as before, take the branches that were noted.

    Raises:
        BranchesDiffer: they are not the same.
    """
    with _Taking(branches) as mode:
        yield
        if next(mode.branches, None) is not None:
            raise BranchesDiffer(_differ("ends early"))


def has_kinks(forward: Callable[[], Tensor]) -> bool:
    """Whether an operation with kinks takes what requires a gradient, as far as they are known.

    >>> x = torch.ones(2, requires_grad=True)
    >>> has_kinks(x.exp), has_kinks(lambda: x.relu().exp())
    (False, True)
    """
    with _Looking() as mode:
        forward()
    return mode.found


class _Looking(TorchFunctionMode):
    found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (*args, *(kwargs or {}).values())
        if func in KINKS and any(isinstance(t, Tensor) and t.requires_grad for t in given):
            self.found = True
        return func(*args, **(kwargs or {}))


class _Noting(TorchFunctionMode):
    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self.branches = branches

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kink = KINKS.get(func)
        if kink is None:
            return func(*args, **kwargs)
        if kink.of_output:
            out = func(*args, **kwargs)
            self._note(func, kink.branch, out)
            return out
        self._note(func, kink.branch, *args, **kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, branch: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        with torch.no_grad():
            self.branches.append((func, branch(*args, **kwargs)))


class _Taking(TorchFunctionMode):
    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self.branches = iter(branches)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kink = KINKS.get(func)
        if kink is None:
            return func(*args, **kwargs)
        before, noted = next(self.branches, (None, ()))
        if before is not func:
            raise BranchesDiffer(_differ(f"calls {func.__name__}"))
        try:
            value = kink.value(noted, *args, **kwargs)
        except RuntimeError as error:  # of other shapes
            raise BranchesDiffer(_differ(f"calls {func.__name__}")) from error
        if kink.in_place or kwargs.get("inplace"):
            return args[0].copy_(value)  # others may read the input
        return value


def _differ(where: str) -> str:
    return (
        f"a second pass through the network {where} where the first did not: its operations depend "
        "on its numbers, so set matching.derivative=kept or double"
    )
