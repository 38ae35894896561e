"""The published reading against numbers that the published LoRS code computes.

``fixtures/published.safetensors`` holds, in double precision, its losses at logits of deviation 1,
4 and 14, and one TESLA iteration on two linear networks: 12 pairs, 3 inner steps of 5, rank 3.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from lors.losses import LOSSES

GOLDEN = load_file(Path(__file__).parent / "fixtures" / "published.safetensors")
OURS = {"wbce": "wbce-published", "nce": "ence-published", "bce": "bce-published"}


def error(found: Tensor, golden: Tensor) -> float:
    """Relative to the length of the golden numbers."""
    return ((found.view(-1) - golden.view(-1)).norm() / golden.norm()).item()


@pytest.mark.parametrize("deviation", [1, 4, 14])
@pytest.mark.parametrize("name", OURS)
def test_losses_and_their_gradients_are_those_of_the_published_code(
    name: str, deviation: int
) -> None:
    given = f"loss.{deviation}"
    similarity = "unit_similarity" if name == "bce" else "similarity"
    logits, s = (GOLDEN[f"{given}.{part}"].clone() for part in ("logits", similarity))
    value = LOSSES[OURS[name]](logits.requires_grad_(), s.requires_grad_())
    in_logits, in_similarity = torch.autograd.grad(value, (logits, s))
    assert error(value, GOLDEN[f"{given}.{name}"]) < 1e-10
    assert error(in_logits, GOLDEN[f"{given}.{name}.d_logits"]) < 1e-10
    if name != "bce":  # of which that gradient is not among the numbers
        assert error(in_similarity, GOLDEN[f"{given}.{name}.d_similarity"]) < 1e-10
