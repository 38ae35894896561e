"""What synthetic pairs may start from, and what a start makes of it."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.encoders.encoded import EncodedSplit, mean_captions
from lors.experts import joint_features
from lors.selection import Candidates, select
from lors.sets.synthetic import pairs_within
from lors.setting import Setting
from lors.system.seeding import derive_seed, generator, global_seed

__all__ = ["Material", "Real", "Start"]

Real = tuple[np.ndarray, np.ndarray]
"""Real pairs: the index of each image, and that of its caption. Shapes: (n,), (n,)"""


class Start(NamedTuple):
    """Synthetic pairs before distillation.

    Args:
        images: pixels or features. Shape: (N, …)
        texts: text embeddings. Shape: (N, …)
        real: the real pairs that these are or stand for, if there are such.
    """

    images: Tensor
    texts: Tensor
    real: Real | None


class Material:
    """The real pairs of a setting. What is costly is made when a start asks for it.

    ``drawn`` are real pairs drawn at random, as many as the budget holds, and ``count`` is N, how
    many synthetic pairs there will be.

    Args:
        setting: the real pairs, the budget and the seed.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, config, real = setting, setting.config, setting.real["train"]
        self._rng = np.random.default_rng(derive_seed(config.seed, "start"))
        images = self._rng.choice(len(real), config.distill.budget, replace=False)
        self.drawn: Real = images, real.draw_captions(images, self._rng)
        one = setting.tensors_of(images[:1], self.drawn[1][:1])
        numbers = sum(part.numel() for part in one)
        similarity = config.similarity_within(numbers)
        self.count = pairs_within(config.distill.budget, numbers, similarity, config.most_pairs())
        self.generator: torch.Generator = generator(config.seed, "noise")
        """Draws whatever a start leaves to chance."""

    @property
    def features(self) -> bool:
        """Whether synthetic images are features, so that any vector may be one."""
        return self.setting.config.encoder.space == "features"

    @property
    def frozen(self) -> bool:
        """Whether the joint features are those of frozen trunks."""
        return self.setting.config.encoder.scope == "heads"

    def start(self, images: np.ndarray, captions: np.ndarray) -> Start:
        """These real pairs: as they are, or augmented if ``distill.augment_start`` says so."""
        pixels, texts = self.setting.tensors_of(images, captions)
        if self.setting.config.distill.augment_start:
            split, model = self.setting.pairs.splits["train"], self.setting.flat.model
            photos = EncodedSplit(split.images, split.owner, split.owner)
            with global_seed(self.setting.config.seed, "augmented start"):
                pixels = photos.normalised(images, model, augmented=True)
        return Start(pixels, texts, (images, captions))

    def tensors(self, images: np.ndarray, captions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Real pairs as synthetic pairs are."""
        return self.setting.tensors_of(images, captions)

    def encode(self, images: np.ndarray, texts: np.ndarray) -> tuple[Tensor, Tensor]:
        """Features of both frozen trunks as the heads take them, and synthetic texts are.

        Shapes: (N, f), (N, d)
        """
        model = self.setting.flat.model
        x = torch.from_numpy(images).to(next(model.parameters()))
        return model.image_standard(x), self.encode_texts(texts)

    def encode_texts(self, texts: np.ndarray) -> Tensor:
        """Caption embeddings as synthetic texts are. Shape: (N, d)"""
        model = self.setting.flat.model
        encoded: Tensor = model.text_standard(torch.from_numpy(texts).to(next(model.parameters())))
        return encoded

    def selected(self, kind: str) -> Real:
        """N real pairs by the selection of that name."""
        (chosen, _), captions = select(self.setting, kind, self.count, "start")
        return chosen, captions

    @cached_property
    def candidates(self) -> tuple[Candidates, np.ndarray]:
        """The joint features of all images, each with one drawn caption, and that caption."""
        real = self.setting.real["train"]
        each = real.draw_captions(np.arange(len(real)), self._rng)
        return Candidates(*joint_features(self.setting), each), each

    @cached_property
    def averaged(self) -> Candidates:
        """The joint features of all images, each with the mean of its captions."""
        real = self.setting.real["train"]
        images, texts = joint_features(self.setting)
        if len(texts) > len(real):
            texts = mean_captions(texts[:], real.owner)
        return Candidates(images, texts, np.arange(len(real)))
