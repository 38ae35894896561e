"""Features of a frozen image trunk, computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from lors.data import Split
from lors.encoders.dual import DualEncoder
from lors.encoders.image import normalisation
from lors.files import artifacts
from lors.files.cache import cached_array, fingerprint
from lors.system.progress import Progress

__all__ = ["cached_features", "of_pixels"]


def cached_features(
    split: Split, trunk: nn.Module, key: str, progress: Progress, batch: int = 64
) -> np.ndarray:
    """The trunk's features of a split, memory-mapped from the cache. Shape: (M, f), float32

    Args:
        split: real pairs.
        trunk: frozen.
        key: identifies the trunk with its weights.
        progress: reports long-running work.
        batch: images at a time.
    """
    path = artifacts.home() / "features" / f"{fingerprint(key, split.fingerprint)}.npy"
    return cached_array(path, lambda: _encode(split, trunk, progress, batch), progress)


def of_pixels(trunk: nn.Module) -> Callable[[Tensor], Tensor]:
    """The trunk as a function of uint8 pixels. Shape: (m, 3, size, size) -> (m, f), float32"""
    model = DualEncoder(
        nn.Identity(), nn.Identity(), trunk=trunk, normalised_by=normalisation(trunk)
    )
    device = next(trunk.parameters()).device

    @torch.no_grad()
    def encode(pixels: Tensor) -> Tensor:
        return model.freeze(model.normalise(pixels.to(device))).float().cpu()

    return encode


def _encode(split: Split, trunk: nn.Module, progress: Progress, batch: int) -> np.ndarray:
    encode, starts = of_pixels(trunk), range(0, len(split), batch)
    features = [
        encode(torch.from_numpy(np.array(split.images[start : start + batch])))
        for start in progress.track(starts, "encode images", len(starts))
    ]
    return torch.cat(features).numpy()
