"""The size of a network's operations, which decides how many threads they are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

__all__ = ["multiplications"]


@torch.no_grad()
def multiplications(run: Callable[[], object], *parts: nn.Module) -> list[int]:
    """How many multiplications each convolution and linear layer has in a run.

    Args:
        run: runs some or all of the modules.
        parts: modules, with all within them.

    >>> layer = nn.Linear(10, 3)
    >>> multiplications(lambda: layer(torch.zeros(2, 10)), layer)
    [60]
    """
    found: list[int] = []

    def count(module: nn.Module, _: Any, output: Tensor) -> None:
        weight = module.weight
        assert isinstance(weight, Tensor)
        found.append(output.numel() * weight[0].numel())

    hooks = [
        module.register_forward_hook(count)
        for part in parts
        for module in part.modules()
        if isinstance(module, (nn.Linear, _ConvNd))
    ]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return found
