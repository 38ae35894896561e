"""Numbers in fewer bits: what a set's file may hold in the place of 32-bit floats.

With 16 bits, half-precision floats. With 8 bits, each image, text and row of S has a step of its
own, δ = max |x| / 127, and is kept as x / δ, rounded. Learned rates and ω stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lors.system.errors import InputError

__all__ = ["BITS", "compacted", "expanded"]

BITS = (8, 16, 32)
"""How many bits a number may have; 32: as it was learned."""
LARGEST = 127
"""Of the whole numbers that x is rounded to, on either side of zero."""
STEP = ".step"
"""What the name of a tensor's steps ends with."""


def compacted(tensors: Mapping[str, Tensor], bits: int) -> dict[str, Tensor]:
    """Tensors of a set as a file with so many bits per number holds them.

    >>> found = compacted({"texts": torch.tensor([[0.5, -1.27]]), "rates": torch.ones(2)}, bits=8)
    >>> found["texts"], found["rates"].dtype
    (tensor([[178,   1]], dtype=torch.uint8), torch.float32)

    Args:
        tensors: by name; what has no rows is kept as it is.
        bits: one of ``BITS``.

    Raises:
        InputError: there is no such choice, or numbers are too large for it.
    """
    if bits not in BITS:
        raise InputError(f"numbers have 8, 16 or 32 bits, not {bits}")
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if bits == 32 or tensor.dim() < 2:
            found[name] = tensor
        elif bits == 16:
            found[name] = tensor.half()
            if found[name].isinf().any():
                raise InputError(f"{name} are too large for 16 bits: save 32 or 8 bits")
        else:
            found[name], found[name + STEP] = _rounded(tensor)
    return found


def expanded(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What ``compacted`` was given, as near as the bits allow, in the type of the rates.

    >>> texts = torch.randn(3, 50)
    >>> again = expanded(compacted({"texts": texts, "rates": torch.ones(2)}, bits=8))
    >>> list(again), ((again["texts"] - texts).abs().max() < 0.02).item()
    (['texts', 'rates'], True)

    Raises:
        ValueError: there are no rates; or a tensor of whole numbers has no steps, or others than
            one for each row, or is too large with them.
    """
    if "rates" not in tensors:
        raise ValueError("it holds no rates")
    dtype = tensors["rates"].dtype
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.removesuffix(STEP) in tensors and name.endswith(STEP):
            continue
        if tensor.dtype == torch.uint8:
            step = tensors.get(name + STEP)
            if step is None or step.shape != (*tensor.shape[:1], *[1] * (tensor.dim() - 1)):
                raise ValueError(f"{name} are whole numbers without a step for each row")
            tensor = (tensor.to(dtype) - LARGEST - 1) * step.to(dtype)
            if not tensor.isfinite().all():
                raise ValueError(f"the steps of {name} are too large")
        found[name] = tensor.to(dtype) if tensor.dtype == torch.float16 else tensor
    return found


def _rounded(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """x / δ + 128 as bytes, and δ of each row."""
    most = tensor.abs().amax(tuple(range(1, tensor.dim())), keepdim=True).float()
    step = torch.where(most > 0, most / LARGEST, 1.0)
    return ((tensor / step).round() + LARGEST + 1).to(torch.uint8), step
