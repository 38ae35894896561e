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
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lors.encoders.recompute import within
from lors.matching.kinked import KINKS

__all__ = ["Branches", "BranchesDifferError", "has_kinks", "noted", "taken"]

Branches = list[tuple[Callable[..., Any], torch.Size, tuple[Tensor, ...]]]
"""Each operation with kinks, the shape it took, and its branches, in the order of the pass."""


class BranchesDifferError(RuntimeError):
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
        BranchesDifferError: they are not the same.
    """
    with _Taking(branches) as mode, within(mode.from_here):
        yield
        if mode.place < len(branches):
            raise BranchesDifferError(_differ("ends early"))


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
        args, kwargs = _input_first(args, kwargs)
        out = func(*args, **kwargs) if kink.of_output else None
        with torch.no_grad():
            noted = kink.branch(out) if kink.of_output else kink.branch(*args, **kwargs)
        self.branches.append((func, args[0].shape, noted))
        return out if kink.of_output else func(*args, **kwargs)


class _Taking(TorchFunctionMode):
    def __init__(self, branches: Branches, place: int = 0) -> None:
        super().__init__()
        self.branches, self.place = branches, place

    def from_here(self) -> Callable[[], _Taking]:
        """For a block that runs once more: its branches, again."""
        return partial(_Taking, self.branches, self.place)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kink = KINKS.get(func)
        if kink is None:
            return func(*args, **kwargs)
        (x, *args), kwargs = _input_first(args, kwargs)
        ended = self.place == len(self.branches)
        before, shape, noted = (None, None, ()) if ended else self.branches[self.place]
        self.place += 1
        if before is not func or shape != x.shape:
            raise BranchesDifferError(_differ(f"calls {func.__name__} on {tuple(x.shape)}"))
        if not kink.in_place and not kwargs.get("inplace"):
            return kink.value(noted, x, *args, **kwargs)
        # Others may read the input. Where a slope depends on it, that must be its old value.
        value = kink.value(noted, x if kink.of_output else x.clone(), *args, **kwargs)
        return x.copy_(value)


def _input_first(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The same arguments, of which the first, if it was named, no longer is."""
    if args:
        return args, kwargs
    return (kwargs["input"],), {name: value for name, value in kwargs.items() if name != "input"}


def _differ(where: str) -> str:
    return (
        f"a second pass through the network {where} where the first did not: its operations depend "
        "on its numbers, so set matching.derivative=kept or double"
    )
