"""The distilled set: the artefact a user keeps, shares and trains on."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from lors.config import Config
from lors.data.captions import worded
from lors.encoders import DualEncoder, Standard, TextTrunk
from lors.encoders.image import frozen_trunk, is_given, trunk_key
from lors.encoders.own import is_own
from lors.files import artifacts
from lors.files.headers import restoring
from lors.losses import LOSSES, Loss
from lors.sets.checks import STANDARDS, check_sizes
from lors.sets.loading import PairDataset, pair_loader
from lors.sets.pixels import as_pixels, normalised
from lors.sets.saved import restored_parts, saved_parts
from lors.sets.synthetic import SyntheticPairs
from lors.system.devices import find_device
from lors.system.errors import InputError
from lors.system.progress import Silent
from lors.system.seeding import generator
from lors.training import Batch

__all__ = ["DistilledSet"]

KIND = "distilled set"


@dataclass(frozen=True, repr=False)
class DistilledSet:
    """Synthetic pairs and everything needed to train with them.

    ``small`` is a set that ``lors.distill`` made of two arrays:

    >>> small
    DistilledSet(7 pairs of features and texts, 12 and 10, by hindsight, lowrank S, storage of 8.0)
    >>> small.images.shape, small.texts.shape, small.similarity.shape, len(small.rates)
    (torch.Size([7, 12]), torch.Size([7, 10]), torch.Size([7, 7]), 2)
    >>> for images, texts, similarity in small.loader(batch_size=4):  # also .batches, .dataset
    ...     print(small.loss(images[:, :10] @ texts.T, similarity).shape)  # your model here
    torch.Size([])
    torch.Size([])
    >>> [part.shape for part in small.arrays()]  # NumPy
    [(7, 12), (7, 10), (7, 7)]
    >>> small.save("small.safetensors")
    >>> torch.equal(DistilledSet.load("small.safetensors").images, small.images)
    True

    ``images``, ``texts``, ``batches`` and ``embed`` are in the units of the data: embeddings as the
    trunks, or the user, gave them. A network that is to train at the rates of the set standardises
    them first, as in ``nn.Sequential(distilled.text_standard, nn.Linear(…))``.

    Args:
        pairs: images, texts, similarity and inner rates, with features and texts standardised, as
            the heads of a ``DualEncoder`` take them.
        config: the configuration it was made with: encoders, loss, protocol, seed.
        text_trunk: embeds new captions as the set's texts are embedded.
        mean: of the pixel normalisation, per channel; empty in space features.
        std: likewise.
        image_trunk: identifies the image trunk and its weights.
        image_standard: scope heads: standardises the features of the image trunk; in space
            features, the images of the set are such features.
        text_standard: standardises the embeddings of the text trunk.
        captions: the real caption nearest to each text, where they are known, for people to read;
            nothing trains on them. Length: N, or 0
        imported: what file of another project it was read from; empty if lors made it.
    """

    pairs: SyntheticPairs
    config: Config
    text_trunk: TextTrunk
    mean: tuple[float, ...]
    std: tuple[float, ...]
    image_trunk: str
    image_standard: Standard | None = None
    text_standard: Standard | None = None
    captions: tuple[str, ...] = ()
    imported: str = ""

    def __post_init__(self) -> None:
        budget = self.config.distill.budget
        if self.pairs.storage() > budget:
            raise InputError(
                f"{len(self.pairs)} pairs with a {self.config.similarity.kind} similarity hold as "
                f"many numbers as {self.pairs.storage():.2f} plain pairs, more than the budget of "
                f"{budget}: use fewer pairs, a lower similarity.rank or a larger distill.budget"
            )
        self.pairs.requires_grad_(False)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        config = self.config
        what = "features" if config.encoder.space == "features" else "pixels"
        made = f"by {config.selection.kind or config.matching.kind}"
        made = f"from {self.imported}" if self.imported else made
        parts = (self.pairs.images, self.pairs.texts)
        shapes = " and ".join("x".join(map(str, part.shape[1:])) for part in parts)
        return (
            f"DistilledSet({len(self)} pairs of {what} and texts, {shapes}, {made}, "
            f"{config.similarity.kind} S, storage of {self.storage():.1f})"
        )

    @property
    def loss(self) -> Loss:
        """The contrastive loss that the set was made for."""
        return LOSSES.choose(self.config.loss)

    @property
    def given(self) -> bool:
        """Whether the data came as embeddings, so that there are no trunks."""
        return is_given(self.image_trunk)

    @property
    def rates(self) -> tuple[float, float]:
        """The learned learning rates of the image side and the text side."""
        image, text = self.pairs.rates.tolist()
        return image, text

    def storage(self) -> float:
        """Storage in pair-equivalents: how many plain pairs hold as many numbers."""
        return self.pairs.storage()

    @property
    def images(self) -> Tensor:
        """Pixels as ``normalise`` gives them, or features as the data has them. Shape: (N, …)"""
        images = self.pairs.images.detach()
        features = self.config.encoder.space == "features"
        return self.image_standard.inverse(images) if features and self.image_standard else images

    @property
    def texts(self) -> Tensor:
        """Embeddings as the text trunk gives them; in scope all, of tokens. Shape: (N, …)"""
        texts = self.pairs.texts.detach()
        return self.text_standard.inverse(texts) if self.text_standard else texts

    @property
    def similarity(self) -> Tensor:
        """S. Shape: (N, N)"""
        return self.pairs.similarity.matrix().detach()

    def similarity_at(self, index: Tensor | np.ndarray | Sequence[int]) -> Tensor:
        """The block of S for some pairs, without building the rest. Shape: (m,) -> (m, m)

        >>> small.similarity_at([0, 2]).shape
        torch.Size([2, 2])
        """
        places = torch.as_tensor(index, device=self.pairs.images.device)
        whole = not places.is_floating_point() and places.dtype != torch.bool
        if places.dim() != 1 or not whole or not bool(((places >= 0) & (places < len(self))).all()):
            raise InputError(f"give numbers of pairs, from 0 to {len(self) - 1}, not {index!r}")
        return self.pairs.similarity(places.long()).detach()

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Images, texts and S as NumPy arrays. Shapes: (N, …), (N, …), (N, N)"""
        parts = (self.images, self.texts, self.similarity)
        images, texts, similarity = (part.cpu().float().numpy() for part in parts)
        return images, texts, similarity

    def to(self, device: str | torch.device) -> DistilledSet:
        """The set on another device.

        >>> small.to("cpu").images.device
        device(type='cpu')

        Raises:
            InputError: there is no such device here.
        """
        device = find_device(str(device))
        moved: dict[str, Any] = {"pairs": copy.deepcopy(self.pairs).to(device)}
        for name in STANDARDS:
            standard = getattr(self, name)
            moved[name] = None if standard is None else copy.deepcopy(standard).to(device)
        return replace(self, **moved)

    def dataset(self) -> PairDataset:
        """The pairs as a ``torch.utils.data.Dataset`` of (image, text, number)."""
        return PairDataset(self)

    def loader(
        self, batch_size: int = 128, shuffle: bool = True, seed: int = 0
    ) -> DataLoader[tuple[Tensor, Tensor, int]]:
        """A PyTorch loader for any training loop: batches of (images, texts, S of the batch).

        Args:
            batch_size: pairs per batch.
            shuffle: whether every pass has another order.
            seed: draws the orders.
        """
        return pair_loader(self, batch_size, shuffle, seed)

    def normalise(self, pixels: Tensor) -> Tensor:
        """Photos as the images of the set are. Shape: (M, 3, size, size), uint8 -> floats

        Raises:
            InputError: the set is in space features.
        """
        if self.config.encoder.space == "features":
            raise InputError("a set of features has no pixels: encode photos with its image trunk")
        return normalised(pixels, self.mean, self.std)

    def frozen_trunk(self) -> nn.Module:
        """The frozen image trunk that the set was made with, or the frozen first part of it.

        Raises:
            InputError: it trains along, it is not known, or its weights are not here.
        """
        encoder = self.config.encoder
        if not encoder.looks_through_frozen() or self.given:
            raise InputError("this set was not made with a frozen image trunk")
        if trunk_key(*encoder.trunk(), encoder.trains_from) != self.image_trunk:
            if is_own(encoder.image):
                raise InputError(
                    f"this set was made with another image trunk of the name {encoder.image}: give "
                    "that one again"
                )
            raise InputError(
                f"this set was made with other weights of {encoder.image!r} than those of "
                f"{encoder.image_weights!r}: put the same file there"
            )
        return frozen_trunk(encoder, torch.device("cpu"))

    def pixels(self) -> Tensor:
        """The images for looking at. Shape: (N, 3, size, size), uint8

        Raises:
            InputError: the set is in space features.
        """
        if self.config.encoder.space == "features":
            raise InputError("a set of features has no pixels to look at")
        return as_pixels(self.pairs.images, self.mean, self.std)

    def embed(self, captions: Sequence[str]) -> Tensor:
        """New captions as ``texts`` are embedded. Shape: (C, text_dim)"""
        if isinstance(captions, str) or not captions:
            raise InputError("give a list of one or more captions")
        return torch.from_numpy(self.text_trunk.embed(worded(captions, self.config.data), Silent()))

    def images_for(self, model: DualEncoder) -> Tensor:
        """The images as a network wants them that normalises pixels in another way."""
        images = self.pairs.images.detach()
        if (model.mean, model.std) == (self.mean, self.std):
            return images
        mean, std, new_mean, new_std = (
            images.new_tensor(values).view(-1, 1, 1)
            for values in (self.mean, self.std, model.mean, model.std)
        )
        return (images * std + mean - new_mean) / new_std

    def batches(
        self, batch_size: int = 128, seed: int = 0, model: DualEncoder | None = None
    ) -> Iterator[Batch]:
        """One shuffled pass over the set as (images, texts, S of the batch).

        Args:
            batch_size: pairs per batch.
            seed: draws the order.
            model: if given, images and texts come as its trainable part takes them.
        """
        if batch_size < 1:
            raise InputError(f"a batch holds at least one pair, not {batch_size}")
        pairs = self.pairs
        if model is None:
            pairs = SyntheticPairs(self.images, self.texts, pairs.similarity).requires_grad_(False)
        inputs = model.freeze(self.images_for(model)) if model else pairs.images
        order = pairs.passes(batch_size, generator(seed, "batches"))
        count = -(-len(self) // batch_size)
        for index in islice(order, count):
            yield from pairs.gather([index], inputs.__getitem__)

    def save(self, path: str | Path, bits: int = 32) -> None:
        """Write one safetensors file with a JSON header; 8 or 16 ``bits`` round each number."""
        artifacts.save(Path(path), KIND, *saved_parts(self, bits))

    @classmethod
    def load(cls, path: str | Path) -> DistilledSet:
        """Read a set.

        Raises:
            InputError: the file is absent, damaged, of a newer format, or over its budget.
        """
        header, tensors = artifacts.load(Path(path), KIND)
        with restoring(path):
            made = cls(**restored_parts(header, tensors))
            check_sizes(made)
            return made
