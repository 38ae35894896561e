"""What every matcher does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from lors.encoders import DualEncoder
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.training import Batch

__all__ = [
    "Matcher",
    "Prefetching",
    "Sparing",
    "add_batch_gradients",
    "add_gradients",
    "whole_set",
]


class Matcher(Protocol):
    """Compares synthetic data with real data.

    Its class attribute ``Options`` has its settings, and says what it needs: see
    ``lors.config.MatchingOptions``. ``state`` is what continuing a run needs
    beside the synthetic pairs, empty for most matchers; a checkpoint saves and restores it.

    Args:
        setting: the real pairs, the encoders, networks by seed. Where it is data parallel, each
            rank adds a part of the gradients, whose sum over the ranks is the whole, and returns a
            part of the loss.
        options: its own.
    """

    state: dict[str, Tensor]

    def __init__(self, setting: Setting, options: Any) -> None: ...

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float | Tensor:
        """Add the gradient of the matching loss to every part that requires one; return the loss.

        All randomness comes from the generator. A loss that is a tensor of one number, detached,
        is read together with other numbers, so that a GPU need not be waited for twice.
        """
        ...


@runtime_checkable
class Prefetching(Protocol):
    """A matcher that can read what a later iteration needs while another runs."""

    def prefetch(self, synthetic: SyntheticPairs, generator: torch.Generator) -> None:
        """Begin to read what ``backward`` will need with such a generator. It changes no result."""
        ...


@runtime_checkable
class Sparing(Protocol):
    """A matcher that has a second way to the same bits, at less memory."""

    def spare_memory(self) -> bool:
        """Take that from now on; False: it did so before, or the first takes no more."""
        ...


def whole_set(synthetic: SyntheticPairs, model: DualEncoder) -> Batch:
    """All synthetic pairs as one batch of what the trainable parts take, differentiable."""
    every = torch.arange(len(synthetic))
    return synthetic.gather([every], lambda index: model.freeze(synthetic.images[index]))[0]


def add_gradients(objective: Tensor, synthetic: SyntheticPairs) -> None:
    """Add the gradient of an objective to every part that requires one and that it depends on.

    The parts are named: without that, gradients in the network would be computed too.
    """
    learned = [parameter for parameter in synthetic.parameters() if parameter.requires_grad]
    if learned and objective.requires_grad:
        torch.autograd.backward(objective, inputs=learned)


def add_batch_gradients(
    found: Sequence[Batch], of_rates: Tensor, batches: Sequence[Batch], synthetic: SyntheticPairs
) -> None:
    """Add gradients that are known for batches of a set to every part that requires one.

    Args:
        found: the gradient of each tensor of each batch.
        of_rates: the gradient of the two learned rates. Shape: (2,)
        batches: of the set, as ``SyntheticPairs.gather`` gives them.
        synthetic: the set.
    """
    outputs = [tensor for batch in batches for tensor in batch]
    gradients = [gradient for batch in found for gradient in batch]
    learned = [(o, g) for o, g in zip(outputs, gradients, strict=True) if o.requires_grad]
    if learned:
        torch.autograd.backward([o for o, _ in learned], [g for _, g in learned])
    if synthetic.rates.requires_grad:
        before = synthetic.rates.grad
        synthetic.rates.grad = of_rates if before is None else before + of_rates
