"""Whether an iteration's numbers can be used; if not, what went wrong and what to lower."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from lors.distillation.optimizer import last_moves
from lors.distillation.state import State
from lors.sets.synthetic import SyntheticPairs
from lors.system.errors import DivergedError, LorsError

__all__ = ["check_finite"]

JUMP = 0.5
"""A part that moved by more than this share of its own length in one step is to blame."""


def check_finite(state: State, loss: Tensor) -> float:
    """The loss as a number, unless it or the gradients of the synthetic pairs must not be used.

    Args:
        state: before its step, with the gradients of this iteration.
        loss: the matching loss of this iteration. Shape: ()

    Raises:
        DivergedError: the loss or a gradient is not finite, or all gradients are zero, as after an
            overflow in a normalisation.
        LorsError: that is so because the set starts with pairs that are all alike.
    """
    value, what = _broken(state.synthetic, loss)
    if what is None:
        return value
    alike = [name for name in ("images", "texts") if _alike(getattr(state.synthetic, name))]
    if alike and state.iteration == 0:
        raise LorsError(
            f"{what} at iteration 0, because the {' and the '.join(alike)} that the set starts "
            "with are all alike: check the data, and that distill.budget holds two pairs or more"
        )
    part, advice = _culprit(state)
    raise DivergedError(
        f"{what} at iteration {state.iteration}; {advice}. "
        "The last checkpoint is kept; distill.retries=5 lowers rates by itself",
        part,
    )


def _broken(synthetic: SyntheticPairs, loss: Tensor) -> tuple[float, str | None]:
    """The loss, and what cannot be used, in words: the loss, a gradient, or all of them.

    All that is asked of a GPU comes in one answer.
    """
    found = {
        part: [tensor.grad for tensor in tensors if tensor.grad is not None]
        for part, tensors in synthetic.parts().items()
    }
    finite = {
        part: _every(g.isfinite().all() for g in found[part]) for part in found if found[part]
    }
    zero = _every(~gradient.any() for gradients in found.values() for gradient in gradients)
    value, all_zero, *usable = torch.stack(
        [loss, *(f.to(loss) for f in (zero, *finite.values()))]
    ).tolist()
    if not math.isfinite(value):
        return value, "the matching loss turned non-finite"
    for part, is_usable in zip(finite, usable, strict=True):
        if not is_usable:
            return value, f"the gradient of {part} turned non-finite"
    return value, "every gradient turned zero" if all_zero else None


def _every(flags: Iterable[Tensor]) -> Tensor:
    """Whether all are true. Shape: ()"""
    known = list(flags)
    return torch.stack(known).all() if known else torch.tensor(True)


def _alike(rows: Tensor) -> bool:
    """Whether rows differ by no more than they are rounded, or are as good as zero."""
    rows = rows.detach().double()
    spread, size = (rows - rows[0]).abs().max().item(), rows.abs().max().item()
    return spread <= max(1e-6 * size, 1e-12)


def _culprit(state: State) -> tuple[str, str]:
    """The part to slow down, and advice: the one that jumped in the last step, or inner rates."""
    moves = last_moves(state.optimizer)
    part = max(moves, key=lambda name: moves[name])
    if moves[part] > JUMP:
        return part, f"{part} moved too far in one step: lower distill.learning_rates.{part}"
    image_rate, text_rate = state.synthetic.rates.tolist()
    return (
        "rates",
        f"the inner training run blew up at inner rates {image_rate:.3g} (image) and "
        f"{text_rate:.3g} (text): lower distill.inner_rate, distill.learning_rates.rates or "
        "matching.steps",
    )
