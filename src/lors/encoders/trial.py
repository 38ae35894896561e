"""Whether a module of the caller's own can be trained and matched: a trial on a tiny batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from lors.system.errors import InputError, LorsError, out_of_memory
from lors.system.seeding import generator

__all__ = ["check_frozen", "check_trainable", "features_of", "noise", "pooled"]

ROWS = 2
"""Of the trial's batch."""

TRIES, STEP, TOLERANCE, TINY = 3, 1e-9, 1e-2, 1e-4
"""Of comparing second derivatives with differences, in double precision."""

IN_PLACE = (
    "changes a tensor in place that a gradient needs: write x = x + y in the place of x += y, and "
    "set inplace=False"
)
FUSED = (
    "uses an operation without second derivatives, such as a fused attention: use "
    "torch.nn.functional.scaled_dot_product_attention as it is, or plain torch operations"
)
FUSED_SIGNS = ("once_differentiable", "not implemented", "double back", "no available kernel")
"""What errors say of such operations, in lower case; the last where one is asked for by name."""
DETACHED = "take out detach(), .data, .item(), NumPy and torch.no_grad from its forward"


def noise(*shape: int) -> Tensor:
    """What a trial feeds. Shape: (2, …)"""
    return torch.randn(ROWS, *shape, generator=generator("trial"))


def pooled(outputs: Any, what: str) -> Tensor:
    """Features as they are, or the mean of a feature map. Shape: (m, f) or (m, f, h, w) -> (m, f)

    Raises:
        InputError: they are neither.
    """
    if isinstance(outputs, Tensor) and outputs.is_floating_point() and outputs.dim() in (2, 4):
        return outputs if outputs.dim() == 2 else outputs.mean((2, 3))
    raise InputError(
        f"{what} returns {_said(outputs)}, not features of shape (batch, features): return them "
        "from its forward, or wrap it in a module that does"
    )


def features_of(module: nn.Module, inputs: Tensor, what: str) -> Tensor:
    """What a module makes of a batch, as it is used here: in evaluation mode. Shape: (m, f)

    Raises:
        InputError: it fails, or returns something else than a row of features for each input.
    """
    with _explained(what, inputs):
        outputs = pooled(module.eval()(inputs), what)
    if len(outputs) != len(inputs) or not outputs.shape[1]:
        raise InputError(
            f"{what} returns features of shape {tuple(outputs.shape)} for a batch of "
            f"{len(inputs)}: return one row for each"
        )
    return outputs


def check_frozen(module: nn.Module, inputs: Tensor, what: str) -> None:
    """Refuse a frozen module that no gradient goes back through to its inputs."""
    leaf = inputs.clone().requires_grad_()
    with _explained(what, inputs):
        outputs = features_of(module, leaf, what)
        if not _depends(outputs.sum(), leaf):
            raise InputError(f"no gradient goes through {what} to its inputs: {DETACHED}")


def check_trainable(module: nn.Module, inputs: Tensor, what: str, width: int | None = None) -> int:
    """How many features a module gives, if it can train on learned inputs.

    It is run as matching runs it: as a function of its parameters, whose gradient is differentiated
    again, in the parameters and in the inputs.

    Args:
        module: takes the inputs and returns features.
        inputs: Shape: (2, …)
        what: the module is, for messages.
        width: how many features it must give, if that is known.

    Raises:
        InputError: one sentence on what is wrong, and how to change it.
    """
    if not any(p.requires_grad for p in module.parameters()):
        raise InputError(f"nothing can train in {what}: none of its parameters requires a gradient")
    trial = _Trial(module, inputs, what)
    with _explained(what, inputs):
        with torch.no_grad():
            outputs, again = (trial.outputs(trial.point()) for _ in range(2))
        if width is not None and outputs.shape[1] != width:
            raise InputError(
                f"{what} gives {outputs.shape[1]} numbers, and the other side {width}: both must "
                "end in one joint space"
            )
        if not torch.equal(outputs, again) and outputs.isfinite().all():
            raise InputError(
                f"{what} gives other features each time for the same inputs: draw nothing in its "
                "forward, and let dropout follow self.training"
            )
        trial.check()
    try:
        exact = _Trial(copy.deepcopy(module).double(), inputs.double(), what)
        right = any(exact.second_derivative_is_right(seed) for seed in range(TRIES))
    except Exception:  # it runs, as seen above, but not in double precision
        return outputs.shape[1]
    if not right:
        raise InputError(f"{what} {FUSED}")
    return outputs.shape[1]


class _Trial:
    """An objective of a module's outputs, as a function of its parameters and its inputs.

    Args:
        module: what is tried.
        inputs: Shape: (2, …)
        what: the module is, for messages.
    """

    def __init__(self, module: nn.Module, inputs: Tensor, what: str) -> None:
        self.module, self.inputs, self.what = module.eval(), inputs, what
        learned = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self.names, self.start = list(learned), [*learned.values(), inputs]

    def point(self, moved: float = 0.0, along: Sequence[Tensor] = ()) -> list[Tensor]:
        """The parameters and the inputs, as leaves, or moved along directions."""
        moves = along or [torch.zeros_like(tensor) for tensor in self.start]
        pairs = zip(self.start, moves, strict=True)
        return [(t.detach() + moved * move).requires_grad_() for t, move in pairs]

    def outputs(self, point: list[Tensor]) -> Tensor:
        values = dict(zip(self.names, point, strict=False))

        class Called(nn.Module):
            def forward(_, given: Tensor) -> Any:  # noqa: N805
                return functional_call(self.module, values, (given,))

        with sdpa_kernel(SDPBackend.MATH):  # as matching runs it
            return features_of(Called(), point[-1], self.what)

    def gradients(self, point: list[Tensor], again: bool = True) -> list[Tensor]:
        """In the parameters, as far as they have any influence; if asked, with a graph."""
        outputs = self.outputs(point)
        if not outputs.requires_grad:
            raise InputError(f"no gradient reaches the parameters of {self.what}: {DETACHED}")
        directions = torch.randn(outputs.shape[1], 3, generator=generator("directions"))
        objective = (F.normalize(outputs, dim=-1) @ directions.to(outputs)).exp().sum()
        found = torch.autograd.grad(objective, point[:-1], create_graph=again, allow_unused=True)
        reached = [g for g in found if g is not None]
        if not reached:
            raise InputError(f"no gradient reaches the parameters of {self.what}: {DETACHED}")
        return reached

    @staticmethod
    def product(gradients: list[Tensor]) -> Tensor:
        """The gradients along a fixed direction, which is differentiated again."""
        draw = generator("product")
        products = [
            (g * torch.randn(g.shape, generator=draw, dtype=g.dtype)).sum() for g in gradients
        ]
        return torch.stack(products).sum()

    def check(self) -> None:
        """Refuse what has no gradients, or none of its gradients."""
        point = self.point()
        gradients = self.gradients(point)
        if not all(g.isfinite().all() for g in gradients):
            raise InputError(
                f"the gradients of {self.what} are not finite on noise: check its forward, and its "
                "weights"
            )
        product = self.product(gradients)
        if not product.requires_grad:
            raise InputError(f"{self.what} {FUSED}")
        if torch.autograd.grad(product, point, allow_unused=True)[-1] is None:
            raise InputError(f"no gradient goes through {self.what} to its inputs: {DETACHED}")

    def second_derivative_is_right(self, seed: int) -> bool:
        """Whether it is what differences of gradients are along a drawn direction.

        A function that can be differentiated once may be left out of the second derivative without
        an error. The step is short, so that it crosses no kink of a ReLU.
        """
        point, draw = self.point(), generator("second", seed)
        product = self.product(self.gradients(point))
        second = torch.autograd.grad(product, point, materialize_grads=True)
        along = [torch.randn(t.shape, generator=draw, dtype=t.dtype) * t.detach() for t in point]
        ours = sum((s * move).sum().item() for s, move in zip(second, along, strict=True))
        above, below = (
            self.product(self.gradients(self.point(step, along), again=False)).item()
            for step in (STEP, -STEP)
        )
        theirs = (above - below) / (2 * STEP)
        return abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs)) + TINY * abs(above)


def _depends(value: Tensor, leaf: Tensor) -> bool:
    if not value.requires_grad:
        return False
    return torch.autograd.grad(value, leaf, allow_unused=True)[0] is not None


@contextmanager
def _explained(what: str, inputs: Tensor) -> Iterator[None]:
    """Say in one sentence what torch, or a module's own code, raises."""
    try:
        yield
    except LorsError:
        raise
    except Exception as error:  # a forward of the caller's may raise anything
        if out_of_memory(error):
            raise
        text = " ".join(str(error).split())
        low = text.lower()
        if "inplace operation" in low or "in-place operation" in low:
            raise InputError(f"{what} {IN_PLACE} ({text})") from error
        if any(sign in low for sign in FUSED_SIGNS):
            raise InputError(f"{what} {FUSED} ({text})") from error
        if "does not require grad" in low:
            raise InputError(f"no gradient reaches the parameters of {what}: {DETACHED}") from error
        shape = tuple(inputs.shape)
        raise InputError(
            f"{what} fails on inputs of shape {shape} ({type(error).__name__}: {text})"
        ) from error


def _said(outputs: Any) -> str:
    if isinstance(outputs, Tensor):
        return f"a tensor of shape {tuple(outputs.shape)} and type {outputs.dtype}"
    return f"a {type(outputs).__name__}"
