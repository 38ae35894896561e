"""Pairs: images, each with one or more captions, in splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

__all__ = ["Item", "Pairs", "Split"]


@dataclass(frozen=True)
class Item:
    """One image and its captions, as a source describes it before anything is decoded.

    Args:
        key: changes when the image changes.
        captions: one or more.
        load: decodes the image.
    """

    key: str
    captions: tuple[str, ...]
    load: Callable[[], Image.Image]


@dataclass(frozen=True)
class Split:
    """M decoded images with C >= M captions.

    Args:
        images: Shape: (M, 3, size, size), uint8, usually memory-mapped.
        captions: all captions, image after image. Length: C.
        owner: the image of each caption. Shape: (C,)
    """

    images: np.ndarray
    captions: list[str]
    owner: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class Pairs:
    """A dataset with the splits ``train``, ``val`` and ``test``.

    Args:
        fingerprint: identifies the content and the image size.
        splits: by name.
    """

    fingerprint: str
    splits: dict[str, Split]
