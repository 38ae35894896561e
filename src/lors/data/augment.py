"""Training augmentation of real images."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

__all__ = ["augment"]

SHARE = 5 / 30
"""The strength of RandAugment: magnitude 5, where 30 is the strongest."""


def augment(images: Tensor) -> Tensor:
    """Random resized crop, flip and two operations of RandAugment, drawn for each image.

    Randomness comes from torch's global generator: wrap the call in ``global_seed``.

    Args:
        images: uint8. Shape: (m, 3, size, size)
    """
    if not len(images):  # a rank's part of a batch may be empty
        return images
    crop = v2.RandomResizedCrop(images.shape[-1], scale=(0.5, 1.0), antialias=True)
    images = torch.stack([crop(image) for image in images])
    flipped = torch.rand(len(images)) < 0.5
    images[flipped] = images[flipped].flip(-1)
    for _ in range(2):
        images = rand_augment(images)
    return images


def rand_augment(images: Tensor) -> Tensor:
    """One operation of RandAugment, drawn for each image; those with the same one share a call.

    Paper: https://arxiv.org/abs/1909.13719; as torchvision's ``v2.RandAugment`` does it.

    Args:
        images: uint8. Shape: (m, 3, size, size)
    """
    drawn = torch.randint(len(OPERATIONS), (len(images),))
    signs = torch.randint(2, (len(images),)) * 2 - 1
    changed = images.clone()
    for which, operation in enumerate(OPERATIONS):
        for sign in (-1, 1):
            here = (drawn == which) & (signs == sign)
            if here.any():
                changed[here] = operation(images[here], sign * SHARE)
    return changed


def _affine(images: Tensor, translate: list[int], shear: list[float]) -> Tensor:
    center = None if any(translate) else [0.0, 0.0]
    return F.affine(images, 0.0, translate, 1.0, shear, center=center)


def _pixels(images: Tensor, share: float) -> int:
    return int(150 / 331 * images.shape[-1] * share)


def _degrees(share: float) -> float:
    return math.degrees(math.atan(0.3 * share))


OPERATIONS: tuple[Callable[[Tensor, float], Tensor], ...] = (
    lambda images, share: images,
    lambda images, share: _affine(images, [0, 0], [_degrees(share), 0.0]),
    lambda images, share: _affine(images, [0, 0], [0.0, _degrees(share)]),
    lambda images, share: _affine(images, [_pixels(images, share), 0], [0.0, 0.0]),
    lambda images, share: _affine(images, [0, _pixels(images, share)], [0.0, 0.0]),
    lambda images, share: F.rotate(images, 30 * share),
    lambda images, share: F.adjust_brightness(images, 1 + 0.9 * share),
    lambda images, share: F.adjust_saturation(images, 1 + 0.9 * share),
    lambda images, share: F.adjust_contrast(images, 1 + 0.9 * share),
    lambda images, share: F.adjust_sharpness(images, 1 + 0.9 * share),
    lambda images, share: F.posterize(images, 8 - round(4 * abs(share))),
    lambda images, share: F.solarize(images, 255 * (1 - abs(share))),
    lambda images, share: F.autocontrast(images),
    lambda images, share: F.equalize(images),
)
"""RandAugment's operations on images, with the signed share of their greatest strength."""
