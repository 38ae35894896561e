"""Pretrained CLIPs that tell how well images and captions fit.

Their embeddings score pairs (CLIP-score filtering) and give a similarity that is not learned (the
paper's ablation 17).
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.data import Split
from lors.data.shards import Features
from lors.encoders.open_clip_text import OpenClipText
from lors.encoders.text import embed_once
from lors.files import artifacts
from lors.files.cache import cached_array, fingerprint
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["check_scorer", "embed_pixels", "given_embeddings", "open_clip_embeddings"]

KIND = "open_clip:"


def check_scorer(name: str) -> None:
    """Refuse a name that is no scorer.

    Raises:
        InputError: it is none of ``expert``, ``given``, or a known open_clip model with weights.
    """
    if name.startswith(KIND):
        OpenClipText.check(name.removeprefix(KIND))
    elif name not in ("expert", "given"):
        raise InputError(
            f"unknown scorer {name!r}: set scorer=expert, scorer=given for embeddings of one joint "
            "space, or scorer=open_clip:ARCHITECTURE/TAG"
        )


def given_embeddings(split: Split) -> tuple[Features, Features]:
    """Given images and texts, which must come from one joint space. Shapes: (M, e), (C, e)

    Raises:
        InputError: they were not given, or cannot be of one space.
    """
    if split.texts is None:
        raise InputError("scorer=given needs data.source=embeddings: set scorer=expert")
    if split.images.shape[1] != split.texts.shape[1]:
        raise InputError(
            f"image embeddings have {split.images.shape[1]} numbers and text embeddings "
            f"{split.texts.shape[1]}, so that they are not of one joint space: set scorer=expert"
        )
    return split.images, split.texts


def open_clip_embeddings(
    name: str, split: Split, device: torch.device, progress: Progress, batch: int = 64
) -> tuple[np.ndarray, np.ndarray]:
    """The images and captions of a split in an open_clip model's joint space, from the cache.

    Args:
        name: ``open_clip:ARCHITECTURE/TAG``; the tag may be the path of a weight file.
        split: real pairs with pixels and captions.
        device: where to encode images.
        progress: reports long-running work.
        batch: images at a time.

    Returns:
        Shapes: (M, e), (C, e)
    """
    if split.texts is not None:
        raise InputError(
            "given embeddings have no pixels for a CLIP to look at: set scorer=given or "
            "scorer=expert"
        )
    clip = OpenClipText(name.removeprefix(KIND))
    path = artifacts.home() / "features" / f"{fingerprint(clip.fingerprint, split.fingerprint)}.npy"

    def encode() -> np.ndarray:
        starts = range(0, len(split), batch)
        parts = []
        for start in progress.track(starts, "encode images by CLIP", len(starts)):
            pixels = torch.from_numpy(np.array(split.images[start : start + batch]))
            parts.append(embed_pixels(clip, pixels.to(device)))
        return torch.cat(parts).numpy()

    return cached_array(path, encode, progress), embed_once(clip, split.captions, progress)


@torch.no_grad()
def embed_pixels(clip: OpenClipText, pixels: Tensor) -> Tensor:
    """uint8 pixels of any size to embeddings, resized and normalised as the model wants them."""
    visual = clip.model.to(pixels.device).visual
    side = visual.image_size
    size = side if isinstance(side, tuple) else (side, side)
    images = F.interpolate(pixels.float() / 255, size, mode="bicubic", antialias=True).clamp(0, 1)
    mean, std = (images.new_tensor(v).view(-1, 1, 1) for v in (visual.image_mean, visual.image_std))
    encoded: Tensor = clip.model.encode_image((images - mean) / std)
    return encoded.float().cpu()
