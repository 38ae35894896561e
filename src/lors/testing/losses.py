"""The promises of losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from lors.losses import LOSSES, Loss
from lors.system.seeding import generator
from lors.testing.report import BrokenError, Checks, Report
from lors.testing.trying import (
    bits,
    named,
    title,
    with_other_global_seeds,
    without_global_generators,
)

__all__ = ["check_loss"]

SIZES = (2, 3, 8)
LARGE = 1000.0
"""Cosines divided by a temperature of 0.001."""


def check_loss(loss: Loss | str) -> Report:
    """Check that a loss can be trained with, matched with and learned through.

    >>> print(check_loss("wbce"))  # doctest: +ELLIPSIS
    loss 'wbce' keeps its promises
    ok      returns one finite number
    ...

    Args:
        loss: the function, or the name that it is registered with.

    Raises:
        BrokenPromiseError: a promise is broken; the message lists all.
        InputError: there is no such loss.
    """
    with named(LOSSES, loss) as name:
        function, checks = LOSSES.choose(name), Checks(title(LOSSES, name))
        for promise, kept in PROMISES.items():
            checks.check(promise, partial(kept, function))
        return checks.report()


def _logits(size: int, spread: float = 5.0) -> Tensor:
    drawn = torch.randn(size, size, generator=generator("logits", size), dtype=torch.float64)
    return spread * drawn


def _similarity(size: int) -> Tensor:
    """Any real numbers, near the identity."""
    drawn = torch.randn(size, size, generator=generator("similarity", size), dtype=torch.float64)
    return torch.eye(size, dtype=torch.float64) + 0.1 * drawn


def _number(loss: Loss) -> None:
    for size in (1, *SIZES):
        for similarity in (torch.eye(size).double(), _similarity(size)):
            value = loss(_logits(size), similarity)
            if not isinstance(value, Tensor) or value.shape != ():
                shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
                raise BrokenError(f"it gave {shape} for {size} pairs, not a tensor of shape ()")
            if not value.isfinite():
                raise BrokenError(f"it gave {value.item()} for {size} pairs")


def _types_kept(loss: Loss) -> None:
    for kind in (torch.float32, torch.float64):
        found = loss(_logits(3).to(kind), _similarity(3).to(kind)).dtype
        if found != kind:
            raise BrokenError(f"it gave {found} for {kind}")


def _differentiable(loss: Loss) -> None:
    logits = _logits(3, 1.0).requires_grad_()
    value = loss(logits, _similarity(3))
    if not value.requires_grad:
        raise BrokenError("it has no gradient in the logits: compute it with torch, without detach")
    torch.autograd.gradcheck(lambda x: loss(x, _similarity(3)), (logits,))


def _twice(loss: Loss) -> None:
    """What trajectory matching and Hindsight differentiate."""
    logits = _logits(3, 1.0).requires_grad_()
    torch.autograd.gradgradcheck(lambda x: loss(x, _similarity(3)), (logits,))


def _in_similarity(loss: Loss) -> str:
    similarity = _similarity(3).requires_grad_()
    value = loss(_logits(3, 1.0).requires_grad_(), similarity)
    (found,) = torch.autograd.grad(value, similarity, allow_unused=True)
    if found is None or not found.any():
        return "it does not depend on S, so that S is not learned"
    logits = _logits(3, 1.0)
    torch.autograd.gradcheck(lambda s: loss(logits, s), (similarity,))
    return "S is learned"


def _large(loss: Loss) -> None:
    for size in SIZES:
        for sign in (-1, 1):
            logits = (sign * LARGE * torch.eye(size).mul(2).sub(1)).requires_grad_()
            value = loss(logits, torch.eye(size))
            (found,) = torch.autograd.grad(value, logits)
            if not (value.isfinite() and found.isfinite().all()):
                raise BrokenError(
                    f"logits of {LARGE:g} give {value.item()}: use log_softmax or softplus instead "
                    "of log and exp"
                )


def _any_order(loss: Loss) -> None:
    logits, similarity = _logits(8), _similarity(8)
    order = torch.randperm(8, generator=generator("order"))
    value = loss(logits, similarity)
    other = loss(logits[order][:, order], similarity[order][:, order])
    if not torch.allclose(value, other, rtol=1e-6):
        raise BrokenError(f"the same pairs in another order give {other:.6g}, not {value:.6g}")


def _inputs_left_alone(loss: Loss) -> None:
    logits, similarity = _logits(3), _similarity(3)
    before = bits([logits, similarity])
    loss(logits, similarity)
    if bits([logits, similarity]) != before:
        raise BrokenError("it changed the logits or the similarity that it was given")


def _same_twice(loss: Loss) -> None:
    def value() -> Tensor:
        return loss(_logits(8), _similarity(8))

    if bits(value()) != bits(with_other_global_seeds(value)):
        raise BrokenError("two calls differ: a loss draws nothing at random")


def _global_generators(loss: Loss) -> None:
    without_global_generators(lambda: loss(_logits(8), _similarity(8)))


PROMISES: Mapping[str, Callable[[Loss], str | None]] = {
    "returns one finite number": _number,
    "keeps the type of its inputs": _types_kept,
    "differentiable in the logits": _differentiable,
    "differentiable twice": _twice,
    "differentiable in S, if it depends on it": _in_similarity,
    "finite for large logits": _large,
    "the order of pairs does not matter": _any_order,
    "leaves its inputs alone": _inputs_left_alone,
    "same bits twice": _same_twice,
    "leaves global generators alone": _global_generators,
}
