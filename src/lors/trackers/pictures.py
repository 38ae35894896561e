"""Pictures of a set for looking at in a tracker."""

from __future__ import annotations

import numpy as np
from torch import Tensor
from torchvision.utils import make_grid

__all__ = ["heat_map", "side_by_side"]

SIDE = 512
"""Small pictures are enlarged to about this many pixels, so that they can be seen."""


def side_by_side(pixels: Tensor) -> np.ndarray:
    """Images in a grid. Shape: (n, 3, size, size), uint8 -> (h, w, 3), uint8"""
    columns = int(np.ceil(np.sqrt(len(pixels))))
    grid = make_grid(pixels.cpu(), nrow=columns, padding=1, pad_value=255)
    return _enlarged(grid.permute(1, 2, 0).numpy())


def heat_map(similarity: np.ndarray) -> np.ndarray:
    """S with positive values in red and negative ones in blue. Shape: (N, N) -> (h, w, 3), uint8

    The largest value off the diagonal has the full colour: the diagonal is far above the rest, and
    on its own scale nothing else would show.
    """
    off_diagonal = similarity[~np.eye(len(similarity), dtype=bool)]
    top = float(np.abs(off_diagonal).max(initial=0)) or 1.0
    scaled = np.clip(similarity / top, -1, 1)
    fade = 255 * (1 - np.abs(scaled))
    red, blue = np.where(scaled > 0, 255, fade), np.where(scaled < 0, 255, fade)
    return _enlarged(np.stack([red, fade, blue], -1).round().astype(np.uint8))


def _enlarged(picture: np.ndarray) -> np.ndarray:
    factor = max(1, SIDE // max(picture.shape[:2]))
    return picture.repeat(factor, 0).repeat(factor, 1)
