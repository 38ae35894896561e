"""A split of the real data as a dual encoder takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lors.data import Split
from lors.data.augment import augment
from lors.encoders.dual import DualEncoder
from lors.encoders.text import TextTrunk, embed_once
from lors.progress import Progress
from lors.seeding import derive_seed, global_seed

__all__ = ["EncodedSplit", "encode_split"]


@dataclass(frozen=True)
class EncodedSplit:
    """Images and caption embeddings.

    Args:
        images: uint8 pixels of shape (M, 3, size, size), or the frozen trunk's features (M, f).
        texts: caption embeddings. Shape: (C, text_dim)
        owner: the image of each caption, ascending. Shape: (C,)
    """

    images: np.ndarray
    texts: np.ndarray
    owner: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    def normalised(self, index: np.ndarray, model: DualEncoder, augmented: bool = False) -> Tensor:
        """Images as the trunk expects them, or their features. Shape: (m, …)"""
        parameter = next(model.parameters())
        images = torch.from_numpy(self.images[index])
        if images.dtype != torch.uint8:
            return images.to(parameter)
        return model.normalise((augment(images) if augmented else images).to(parameter.device))

    def inputs(self, index: np.ndarray, model: DualEncoder, augmented: bool = False) -> Tensor:
        """What the trainable part of the model takes for these images. Shape: (m, …)"""
        images = self.normalised(index, model, augmented)
        return images if self.images.dtype != np.uint8 else model.freeze(images)

    def captions(self, index: np.ndarray, model: DualEncoder) -> Tensor:
        """Embeddings of these captions. Shape: (m, text_dim)"""
        return torch.from_numpy(self.texts[index]).to(next(model.parameters()))

    def draw_captions(self, images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One drawn caption for each image. Shape: (m,) -> (m,)"""
        first = np.searchsorted(self.owner, images, side="left")
        beyond = np.searchsorted(self.owner, images, side="right")
        return rng.integers(first, beyond)

    def epoch(
        self,
        model: DualEncoder,
        batch_size: int,
        captions: str,
        augmented: bool,
        *keys: int | str,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """One shuffled pass as (inputs, texts) batches; the keys seed everything random.

        Args:
            model: who will take the batches.
            batch_size: pairs per batch.
            captions: ``one`` drawn caption per image, or ``each`` caption once.
            augmented: whether to augment the images.
        """
        rng = np.random.default_rng(derive_seed(*keys))
        if captions == "each":
            texts = rng.permutation(len(self.texts))
            images = self.owner[texts]
        else:
            images = rng.permutation(len(self))
            texts = self.draw_captions(images, rng)
        for start in range(0, len(images), batch_size):
            here = slice(start, start + batch_size)
            with global_seed(*keys, start), torch.no_grad():
                inputs = self.inputs(images[here], model, augmented)
            yield inputs, self.captions(texts[here], model)


def encode_split(
    split: Split, trunk: TextTrunk, model: DualEncoder, keep_pixels: bool, progress: Progress
) -> EncodedSplit:
    """Embed the captions and, unless pixels are needed, run the frozen image trunk once.

    Args:
        split: real pairs.
        trunk: the text trunk.
        model: its frozen part encodes the images.
        keep_pixels: the trunk trains, or sees augmented images.
        progress: who to tell.
    """
    encoded = EncodedSplit(split.images, embed_once(trunk, split.captions), split.owner)
    if keep_pixels:
        return encoded
    chunks = np.array_split(np.arange(len(split)), -(-len(split) // 64))
    with torch.no_grad():
        features = [
            encoded.inputs(chunk, model).float().cpu()
            for chunk in progress.track(chunks, "encode images", len(chunks))
        ]
    return EncodedSplit(torch.cat(features).numpy(), encoded.texts, encoded.owner)
