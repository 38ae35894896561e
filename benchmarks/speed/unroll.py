"""The gradient through training two heads, without their first weight matrices."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.encoders import DualEncoder
from lors.encoders.heads import MlpHead
from lors.losses import wbce
from lors.matching.unroll import PlainSide, train_differentiably
from lors.training import Batch

__all__ = ["gradient", "ratios"]


def gradient(model: DualEncoder, whole: Batch, steps: int, short: bool) -> Sequence[Tensor]:
    """The gradient of the mean logit of all pairs, after so many steps on all of them.

    Args:
        model: where training starts.
        whole: the set; all its tensors require gradients.
        steps: of SGD.
        short: by coefficients, or else by all parameters.
    """
    side = None if short else PlainSide
    every = [torch.arange(len(whole.inputs))] * steps
    rates = torch.tensor([0.1, 0.1])
    ends = train_differentiably(model, whole, every, wbce, [rates] * steps, 0.9, 5e-4, side)
    end = model.logits(ends[0](whole.inputs), ends[1](whole.texts)).diagonal().mean()
    return torch.autograd.grad(end, list(whole))


def ratios(
    rounds: int, pairs: int = 95, steps: int = 20, sizes: Sequence[int] = (1280, 384)
) -> list[Ratio]:
    """An iteration of Hindsight on features of EfficientNet-Lite0 and MiniLM, without teachers."""
    draw = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DualEncoder(MlpHead(sizes[0], 256), MlpHead(sizes[1], 256))
    parts = [torch.randn(pairs, size, generator=draw) for size in sizes]
    whole = Batch(*(part.requires_grad_() for part in (*parts, 3 * torch.eye(pairs))))
    return [
        side_by_side(
            f"{steps} steps on {pairs} pairs of {sizes[0]} and {sizes[1]} features",
            lambda: gradient(model, whole, steps, short=True),
            lambda: gradient(model, whole, steps, short=False),
            rounds,
        )
    ]
