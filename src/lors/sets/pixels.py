"""Pixels and what trunks take of them: normalised by a mean and a deviation per channel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["as_pixels", "normalised"]


def as_pixels(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Normalised images for looking at. Shape: (N, 3, size, size) -> the same, uint8"""
    scale, shift = (images.new_tensor(values).view(-1, 1, 1) for values in (std, mean))
    return (255 * (images * scale + shift)).round().clamp(0, 255).to(torch.uint8)


def normalised(pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Pixels as a trunk takes them. Shape: (N, 3, size, size), uint8 -> the same, floats"""
    shift, scale = (torch.tensor(v).view(-1, 1, 1).to(pixels.device) for v in (mean, std))
    return (pixels / 255 - shift) / scale
