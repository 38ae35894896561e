"""Training augmentation of real images."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.transforms import v2

__all__ = ["augment"]


def augment(images: Tensor) -> Tensor:
    """Random resized crop, flip and RandAugment, drawn for each image.

    Randomness comes from torch's global generator: wrap the call in ``global_seed``.

    Args:
        images: uint8. Shape: (m, 3, size, size)
    """
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(images.shape[-1], scale=(0.5, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandAugment(num_ops=2, magnitude=5),
        ]
    )
    return torch.stack([transform(image) for image in images])
