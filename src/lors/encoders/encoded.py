"""A split of the real data as a dual encoder takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lors.data.augment import augment
from lors.data.shards import Features
from lors.encoders.dual import DualEncoder
from lors.system import ranks
from lors.system.memory import in_pieces
from lors.system.parallel import my_rows
from lors.system.seeding import derive_seed, global_seed
from lors.system.transfers import moved

__all__ = ["EncodedSplit", "mean_captions"]


@dataclass(frozen=True)
class EncodedSplit:
    """Images and captions, each as raw as the trainable parts need them.

    Args:
        images: uint8 pixels of shape (M, 3, size, size), or a frozen trunk's features (M, f).
        texts: caption embeddings (C, text_dim), or token ids (C, L) if the text trunk trains.
            Given features may lie in their files.
        owner: the image of each caption, ascending. Shape: (C,)
    """

    images: Features
    texts: Features
    owner: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    def normalised(self, index: np.ndarray, model: DualEncoder, augmented: bool = False) -> Tensor:
        """Pixels as the trunk expects them, or standardised features. Shape: (m, …)"""
        parameter = next(model.parameters())
        images = torch.from_numpy(self.images[index])
        if images.dtype != torch.uint8:
            return model.image_standard(moved(images, parameter))
        pixels = augment(images) if augmented else images
        return model.normalise(moved(pixels, pixels.new_empty(0, device=parameter.device)))

    def inputs(self, index: np.ndarray, model: DualEncoder, augmented: bool = False) -> Tensor:
        """What the trainable part of the image side takes. Shape: (m, …)"""
        images = self.normalised(index, model, augmented)
        return images if self.images.dtype != np.uint8 else model.freeze(images)

    def captions(self, index: np.ndarray, model: DualEncoder) -> Tensor:
        """What the trainable part of the text side takes. Shape: (m, …)"""
        parameter = next(model.parameters())
        texts = torch.from_numpy(self.texts[index])
        if not texts.is_floating_point():
            return moved(texts, torch.empty(0, dtype=torch.long, device=parameter.device))
        return model.text_standard(moved(texts, parameter))

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
        drop_last: bool = False,
    ) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
        """One shuffled pass as (images' indices, inputs, texts); the keys seed all randomness.

        Args:
            model: who will take the batches; if it is divided, the inputs and texts are this
                rank's part, and each part is augmented by draws of its own.
            batch_size: pairs per batch.
            captions: ``one`` drawn caption per image, or ``each`` caption once.
            augmented: whether to augment the images.
            drop_last: whether to leave out the last batch if it is smaller than the others.
        """
        rng = np.random.default_rng(derive_seed(*keys))
        if captions == "each":
            texts = rng.permutation(len(self.texts))
            images = self.owner[texts]
        else:
            images = rng.permutation(len(self))
            texts = self.draw_captions(images, rng)
        count = len(images)
        if drop_last and count > batch_size:
            count = count // batch_size * batch_size
        for start in range(0, count, batch_size):
            here = slice(start, start + batch_size)
            mine = my_rows(np.arange(len(images))[here]) if model.divided else here
            part = (ranks.rank(),) if model.divided else ()
            with global_seed(*keys, start, *part), torch.no_grad():
                inputs = self.inputs(images[mine], model, augmented)
            yield images[here], inputs, self.captions(texts[mine], model)

    @torch.no_grad()
    def embed(self, model: DualEncoder, chunk: int = 512) -> tuple[Tensor, Tensor]:
        """All images and captions in the joint space. Shapes: (M, d), (C, d)

        At most so many at a time, and fewer where memory does not suffice.
        """

        def texts(size: int) -> Tensor:
            chunks = _chunks(len(self.texts), size)
            return torch.cat([model.embed_texts(self.captions(i, model)) for i in chunks])

        return self.embed_images(model, chunk), in_pieces(texts, chunk)

    @torch.no_grad()
    def embed_images(self, model: DualEncoder, chunk: int = 512) -> Tensor:
        """All images in the joint space, as ``embed`` has them. Shape: (M, d)"""

        def images(size: int) -> Tensor:
            chunks = _chunks(len(self), size)
            return torch.cat([model.embed_images(self.inputs(i, model)) for i in chunks])

        return in_pieces(images, chunk)


def _chunks(count: int, chunk: int) -> list[np.ndarray]:
    return np.array_split(np.arange(count), -(-count // chunk))


def mean_captions(texts: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """The mean of each image's captions, in float32.

    >>> mean_captions(np.array([[1.0], [3.0], [5.0]]), owner=np.array([0, 0, 1])).tolist()
    [[2.0], [5.0]]

    Args:
        texts: Shape: (C, d)
        owner: the image of each caption, ascending; every image has one. Shape: (C,)

    Returns:
        Shape: (M, d)
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    counts = np.diff(first, append=len(owner))
    return (np.add.reduceat(texts, first, axis=0) / counts[:, None]).astype(np.float32)
