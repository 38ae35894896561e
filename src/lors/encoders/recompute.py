"""Activations that are computed again on the way back, instead of being kept until then.

A trunk is cut into the blocks it is made of. Of each, only what it takes is kept, and when the way
back comes to it, its forward pass runs once more, with the same weights and the same operations, so
that the gradient has the same bits. It costs one forward pass; memory is that of the largest block.

It serves plain gradients. A gradient of a gradient keeps everything anyway: see ``keeping``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from lors.encoders.dropout import drops

__all__ = ["blocks_of", "keeping", "plain_attention", "recompute_blocks", "within"]

Remember = Callable[[], Callable[[], AbstractContextManager[object]]]
"""Called on the way forward; what it returns is entered whenever a block runs again."""

_AROUND: ContextVar[tuple[Remember, ...]] = ContextVar("recompute", default=())
_KEEPING: ContextVar[bool] = ContextVar("keeping", default=False)


@contextmanager
def within(remember: Remember) -> Iterator[None]:
    """Say what a block that runs inside must run within when it runs again, outside.

    Args:
        remember: looks at how things are, when a block first runs.
    """
    token = _AROUND.set((*_AROUND.get(), remember))
    try:
        yield
    finally:
        _AROUND.reset(token)


@contextmanager
def keeping() -> Iterator[None]:
    """Keep activations inside the block: a graph of a graph would keep them all the same."""
    token = _KEEPING.set(True)
    try:
        yield
    finally:
        _KEEPING.reset(token)


@contextmanager
def plain_attention() -> Iterator[None]:
    """The only attention with second derivatives, also for a block that runs again."""
    only = partial(sdpa_kernel, SDPBackend.MATH)
    with only(), within(lambda: only):
        yield


def blocks_of(trunk: nn.Module) -> list[nn.Module]:
    """The parts of a trunk that run one after the other: the elements of its outermost sequences.

    >>> first, last = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> blocks_of(nn.ModuleDict({"a": nn.Sequential(first, nn.Sequential(last))})) == [first, last]
    True
    """
    found: list[nn.Module] = []
    for part in trunk.children():
        if isinstance(trunk, (nn.Sequential, nn.ModuleList)) and not isinstance(
            part, (nn.Sequential, nn.ModuleList)
        ):
            found.append(part)
        else:
            found += blocks_of(part)
    return found


def recompute_blocks(*trunks: nn.Module) -> bool:
    """Let the blocks of trunks run again on the way back.

    Returns:
        Whether there was a block that did not do so before.
    """
    new = [
        block
        for trunk in trunks
        for block in blocks_of(trunk)
        if "forward" not in vars(block) and any(True for _ in block.parameters())
    ]
    for block in new:
        if not drops(block):  # its masks are drawn in turn
            vars(block)["forward"] = _Again(block)
    return any("forward" in vars(block) for block in new)


class _Again:
    """The forward pass of a block."""

    def __init__(self, block: nn.Module) -> None:
        self.block, self.inside = block, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.inside or _KEEPING.get() or not torch.is_grad_enabled():
            return type(self.block).forward(self.block, *args, **kwargs)
        # A function of θ lends its weights to the network only while it runs forward.
        named = (self.block.named_parameters, self.block.named_buffers)
        weights: dict[str, Tensor] = {}
        for every in named:
            weights |= dict(every(remove_duplicate=False))
        contexts = [remember() for remember in _AROUND.get()]
        runs = 0

        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal runs
            runs += 1
            with ExitStack() as stack:
                for context in contexts if runs > 1 else ():
                    stack.enter_context(context())
                return self._with(weights, args, kwargs)

        return checkpoint(run, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

    def _with(self, weights: dict[str, Tensor], args: Any, kwargs: Any) -> Any:
        self.inside = True
        try:
            return functional_call(self.block, weights, args, kwargs, tie_weights=False)
        finally:
            self.inside = False
