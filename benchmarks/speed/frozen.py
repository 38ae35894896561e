"""Photos learned through a frozen trunk: once forward and back, without its batch norms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.encoders import DualEncoder
from lors.encoders.folding import folded
from lors.encoders.image import image_trunk

__all__ = ["gradient", "plain_gradient", "ratios"]


def gradient(model: DualEncoder, photos: Tensor) -> Tensor:
    """The gradient of all features in the photos, as a dual encoder computes them."""
    return torch.autograd.grad(model.freeze(photos).sum(), photos)[0]


def plain_gradient(trunk: nn.Module, photos: Tensor) -> Tensor:
    """The same by the trunk as it is, with all photos at once."""
    return torch.autograd.grad(trunk(photos).sum(), photos)[0]


def ratios(
    rounds: int,
    name: str = "tf_efficientnet_lite0",
    sizes: Sequence[int] = (64, 128),
    count: int = 100,
) -> list[Ratio]:
    """A hundred photos through EfficientNet-Lite0."""
    lines = []
    for size in sizes:
        trunk = image_trunk(name, None, size).eval().requires_grad_(False)
        lighter = folded(trunk, size).to(memory_format=torch.channels_last)
        model = DualEncoder(nn.Identity(), nn.Identity(), trunk=lighter)
        photos = torch.rand(count, 3, size, size, requires_grad=True)
        ours, reference = partial(gradient, model, photos), partial(plain_gradient, trunk, photos)
        lines.append(side_by_side(f"{name}, {count} photos, {size} px", ours, reference, rounds))
    return lines
