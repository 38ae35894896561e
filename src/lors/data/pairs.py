"""Pairs: images, each with one or more captions, in splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from lors.data.shards import Features

__all__ = ["Decoded", "Item", "Split"]


@dataclass(frozen=True)
class Item:
    """One image and its captions, as a source describes it before anything is decoded.

    Args:
        key: changes when the image changes.
        captions: one or more.
        load: decodes the image.
        name: what people know it by, e.g. its file below the root; empty if there is no name.
    """

    key: str
    captions: tuple[str, ...]
    load: Callable[[], Image.Image]
    name: str = ""


@dataclass(frozen=True)
class Split:
    """M decoded images with C >= M captions.

    Args:
        images: uint8 pixels, memory-mapped, of shape (M, 3, size, size); or given features (M, f),
            which may lie in their files.
        captions: all captions, image after image. Length: C, or 0 if the texts are given.
        owner: the image of each caption. Shape: (C,)
        fingerprint: identifies the content and the image size.
        texts: given embeddings of the captions. Shape: (C, d)
    """

    images: Features
    captions: Sequence[str]
    owner: np.ndarray
    fingerprint: str
    texts: Features | None = None

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class Decoded:
    """A dataset with the splits ``train``, ``val`` and ``test``.

    Args:
        fingerprint: identifies the content and the image size.
        splits: by name.
    """

    fingerprint: str
    splits: dict[str, Split]

    @property
    def features(self) -> bool:
        """Whether the images are features, which have no pixels."""
        return self.splits["train"].images.ndim == 2
