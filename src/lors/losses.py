"""Contrastive losses of logits and a ground-truth similarity.

Those with plain names are as the paper writes them, those whose names end in ``_published`` as the
published code computes them: smaller by a factor, and with a small number in each logarithm. Rates
and a weight decay that go with one do not go with the other.

All take logits = ŝ/τ and a similarity S, both of shape (m, m), where row i is image i and column j
is text j, and return a scalar. They are defined for any real S and differentiable in both.

Paper: `Low-Rank Similarity Mining for Multimodal Dataset Distillation
<https://arxiv.org/abs/2406.03793>`_, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config import names
from lors.system.content import content_digest
from lors.system.errors import InputError
from lors.system.registry import Registry

__all__ = [
    "LOSSES",
    "Loss",
    "bce",
    "bce_published",
    "ence",
    "ence_published",
    "named_loss",
    "nce",
    "nce_published",
    "soft_nce",
    "wbce",
    "wbce_published",
]

Loss = Callable[[Tensor, Tensor], Tensor]

LOSSES: Registry[Loss] = names.LOSSES

EPSILON = 1e-6
"""What the published wBCE adds to probabilities and to counts, so that none is zero."""


def nce(logits: Tensor, similarity: Tensor | None = None) -> Tensor:
    """InfoNCE: -1/m Σ_i log P^V_ii + log P^T_ii (eq. 1). The similarity is the identity.

    Use it to train on plain pairs. ``ence`` is its extension to a learned similarity.

    >>> nce(torch.zeros(4, 4))  # 2 log 4
    tensor(2.7726)
    """
    _check_shapes(logits, logits)
    return -(logits.log_softmax(1) + logits.log_softmax(0)).diagonal().mean()


def ence(logits: Tensor, similarity: Tensor) -> Tensor:
    """Extended InfoNCE: -1/m Σ_ij s_ij (log P^V_ij + log P^T_ij). Equals ``nce`` for S = I."""
    _check_shapes(logits, similarity)
    log_p = logits.log_softmax(1) + logits.log_softmax(0)
    return -(similarity * log_p).sum() / len(logits)


def soft_nce(logits: Tensor, targets: Tensor) -> Tensor:
    """InfoNCE with another network's retrieval in the place of the pairs: the cross entropy.

    Least, though not zero, where the logits are the targets.

    Args:
        logits: Shape: (m, m)
        targets: the other network's logits. Shape: (m, m)
    """
    _check_shapes(logits, targets)
    columns, rows = (targets.softmax(dim) for dim in (0, 1))
    losses = columns * logits.log_softmax(0) + rows * logits.log_softmax(1)
    return -losses.sum() / len(logits)


def bce(logits: Tensor, similarity: Tensor) -> Tensor:
    """Binary cross entropy: 1/m Σ_ij ℓ(s_ij, σ(ŝ_ij/τ)).

    With m - 1 negatives for each positive, the negatives dominate; ``wbce`` balances them.
    """
    return _cross_entropy(logits, similarity).sum() / len(logits)


def wbce(logits: Tensor, similarity: Tensor, threshold: float = 0.5) -> Tensor:
    """Weighted binary cross entropy: positives (s_ij > β) and negatives averaged apart.

    The paper's choice for LoRS. A batch without positives, or without negatives, uses the other
    side alone.
    """
    losses = _cross_entropy(logits, similarity)
    positive = similarity > threshold
    count = positive.sum()
    zero = torch.zeros_like(losses)
    positives = torch.where(positive, losses, zero).sum() / count.clamp(min=1)
    negatives = torch.where(positive, zero, losses).sum() / (losses.numel() - count).clamp(min=1)
    return positives + negatives


def nce_published(logits: Tensor, similarity: Tensor | None = None) -> Tensor:
    """InfoNCE of the published code: the mean of the two directions, half of ``nce``.

    >>> nce_published(torch.zeros(4, 4))  # log 4
    tensor(1.3863)
    """
    return nce(logits, similarity) / 2


def ence_published(logits: Tensor, similarity: Tensor) -> Tensor:
    """Extended InfoNCE of the published code: the mean of the two directions, half of ``ence``.

    >>> ence_published(torch.zeros(4, 4), torch.eye(4))
    tensor(1.3863)
    """
    return ence(logits, similarity) / 2


def bce_published(logits: Tensor, similarity: Tensor) -> Tensor:
    """Binary cross entropy of the published code: the mean over all m² elements.

    It is computed from probabilities, so that its gradient fades for logits beyond ±27. The
    published code refuses an S outside [0, 1]; here the formula, which is linear in S, goes on.

    >>> bce_published(torch.zeros(4, 4), torch.eye(4))  # log 2
    tensor(0.6931)
    """
    _check_shapes(logits, similarity)
    inside = similarity.clamp(0, 1)
    losses = F.binary_cross_entropy(logits.sigmoid(), inside, reduction="none")
    return (losses - (similarity - inside) * logits).mean()


def wbce_published(logits: Tensor, similarity: Tensor, threshold: float = 0.5) -> Tensor:
    """Weighted binary cross entropy of the published code: half of ``wbce``, with log(p + 1e-6).

    The small number bounds the loss of a pair that is wrong with certainty, and at τ = 0.07 many
    are: gradients differ from those of ``wbce`` by up to half.

    >>> wbce_published(torch.zeros(4, 4, dtype=torch.double), torch.eye(4))  # nearly log 2
    tensor(0.6931, dtype=torch.float64)
    """
    _check_shapes(logits, similarity)
    p = logits.sigmoid()
    as_positives, as_negatives = (p + EPSILON).log(), (1 - p + EPSILON).log()
    losses = -similarity * as_positives - (1 - similarity) * as_negatives
    positive = (similarity > threshold).to(losses)
    negative = 1 - positive
    sides = ((losses * side).sum() / (side.sum() + EPSILON) for side in (positive, negative))
    return torch.stack([*sides]).mean()


def _cross_entropy(logits: Tensor, similarity: Tensor) -> Tensor:
    """ℓ(y, σ(x)) = -y log σ(x) - (1 - y) log(1 - σ(x)) = softplus(x) - y x, element by element."""
    _check_shapes(logits, similarity)
    return F.softplus(logits) - similarity * logits


def _check_shapes(logits: Tensor, similarity: Tensor) -> None:
    """Refuse what broadcasting would make a number of, but not the loss."""
    if logits.shape != similarity.shape or logits.ndim != 2 or len(set(logits.shape)) != 1:
        raise InputError(
            f"logits of shape {tuple(logits.shape)} and a similarity of shape "
            f"{tuple(similarity.shape)}: both must be (m, m), images x texts"
        )


def named_loss(loss: str | Loss) -> str:
    """The name by which settings can have a loss: its own, or one for a function that is given.

    Raises:
        InputError: there is no such loss, or the function is none: it must return one finite,
            differentiable number for logits and a similarity of any size.
    """
    if isinstance(loss, str):
        return LOSSES.check(loss)
    if not callable(loss):
        raise InputError(
            f"a loss is a name or a function of logits and similarity, not a {type(loss).__name__}"
        )
    name = getattr(loss, "__name__", type(loss).__name__)
    logits = torch.linspace(-1, 1, 9).view(3, 3).requires_grad_()
    try:
        value = loss(logits, torch.eye(3))
    except Exception as error:  # whatever a function of a user's raises
        raise InputError(
            f"the loss {name!r} failed on logits and a similarity of shape (3, 3): {error!r}"
        ) from None
    if not isinstance(value, Tensor) or value.shape != () or not value.isfinite():
        shape: object = type(value).__name__
        if isinstance(value, Tensor):
            shape = tuple(value.shape) or value.item()
        raise InputError(
            f"the loss {name!r} gave {shape} for logits and a similarity of shape (3, 3): it must "
            "return one finite number, as a tensor without dimensions"
        )
    if not value.requires_grad:
        raise InputError(
            f"the loss {name!r} has no gradient in the logits: compute it with torch, without "
            "detach, item or no_grad"
        )
    return LOSSES.give(loss, f"{name}-{content_digest(loss)}")
