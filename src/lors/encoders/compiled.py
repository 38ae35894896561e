"""Training steps in code that ``torch.compile`` makes of a network, where it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lors.encoders.dropout import drops
from lors.system.errors import printable, shortened

__all__ = ["Compiler"]


class Compiler:
    """The forward pass of networks, and so its way back, in compiled code, until that fails once.

    It serves training steps only: compiled code has no second derivatives, and hides the ReLUs
    whose branches differences keep to. Each size of a batch is compiled by itself, so that the bits
    of a step never depend on which sizes came before.

    >>> compiler = Compiler(print, backend="eager")
    >>> compiler(nn.Linear(2, 1, bias=False), torch.zeros(3, 2)).shape
    torch.Size([3, 1])

    Args:
        say: tells the user when it gives up.
        backend: of ``torch.compile``.
    """

    def __init__(
        self, say: Callable[[str], None], backend: str | Callable[..., Any] = "inductor"
    ) -> None:
        self._say, self.works = say, True
        self._run = torch.compile(_forward, dynamic=False, backend=backend)

    def __call__(self, network: nn.Module, *inputs: Tensor) -> Tensor:
        """What the network gives."""
        found: Tensor = self._run(network, *inputs)
        return found

    def serves(self, network: nn.Module) -> bool:
        """Whether to train a network so: not where masks of dropout are drawn in turn."""
        return self.works and not drops(network)

    def give_up(self, error: Exception) -> None:
        """Leave all networks as they are from now on, and say so."""
        if self.works:
            self.works = False
            first = " ".join(str(error).strip().splitlines()[:2])  # who raised it, and why
            reason = shortened(printable(first), 160)
            self._say(
                f"compile=true has no effect: torch.compile fails here ({type(error).__name__}: "
                f"{reason}), so networks train without it."
            )


def _forward(network: nn.Module, *inputs: Tensor) -> Tensor:
    found: Tensor = network(*inputs)
    return found
