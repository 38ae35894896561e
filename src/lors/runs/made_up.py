"""Made-up data: noise of the shapes that a run's real pairs have, none of which is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from lors.config import Config
from lors.data import Decoded, Split, given_shapes
from lors.data.shards import Features
from lors.encoders import DualEncoder
from lors.encoders.text import text_size, training_text
from lors.setting import Setting

__all__ = ["MadeUpSetting", "Noise", "known_pairs", "made_up_pairs"]

ASSUMED = 30_000
"""Real pairs where nobody knows how many there are without reading them: about Flickr30k's."""
DISTINCT = 64
"""Rows of noise that differ; after them they repeat."""


class Noise:
    """Many rows of which only a few are in memory; stands where real images or texts would.

    >>> rows = Noise(5, np.array([[1], [2]]))
    >>> rows.shape, rows[np.array([0, 3])].tolist(), len(rows[1:])
    ((5, 1), [[1], [2]], 4)

    Args:
        count: M, how many there seem to be.
        rows: those that there are, one after the other and again. Shape: (n, …)
    """

    def __init__(self, count: int, rows: np.ndarray) -> None:
        self._rows = rows
        self.shape, self.ndim, self.dtype = (count, *rows.shape[1:]), rows.ndim, rows.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._rows[np.arange(len(self))[index] % len(self._rows)]


def known_pairs(config: Config) -> int | None:
    """How many real pairs there are to train on; None if only reading them would tell."""
    given = given_shapes(config.data)
    return config.data.pairs.get("train") if given is None else given.pairs


def made_up_pairs(config: Config) -> Decoded:
    """Noise of the shapes that the real pairs have, which are not read.

    Of given embeddings, only the shapes are read, as the headers of their files say them.
    """
    rng, given = np.random.default_rng(0), given_shapes(config.data)
    count = known_pairs(config) or max(ASSUMED, config.distill.budget)

    images: Features
    texts: Features | None

    def normal(width: int) -> Features:
        rows = rng.standard_normal((DISTINCT, width), dtype=np.float32)
        return cast(Features, Noise(count, rows))

    if given is not None:
        images, texts = normal(given.images), normal(given.texts)
    else:
        shape = (DISTINCT, 3, config.encoder.size(), config.encoder.size())
        pixels = Noise(count, rng.integers(0, 256, shape, np.uint8))
        images = cast(Features, pixels)
        trains = config.encoder.scope == "all"  # then they are tokens: see MadeUpSetting
        texts = None if trains else normal(text_size(config.encoder))
    split = Split(images, [], np.arange(count), "made up", texts)
    return Decoded("made up", dict.fromkeys(("train", "val", "test"), split))


class MadeUpSetting(Setting):
    """A setting on noise; what a trunk would make of it is noise, too.

    Args:
        config: as ``resolve`` gives it.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config, pairs=made_up_pairs(config))

    def features(self, name: str) -> Features:
        if self._trunk is None:
            return super().features(name)
        size = self.config.encoder.size()
        with torch.no_grad():  # of a whole trunk a vector, of the first part of one a map
            shape = self._trunk(torch.zeros(1, 3, size, size, device=self.device)).shape[1:]
        return self._noise(1, len(self.pairs.splits[name]), shape)

    def seen_by(self, network: DualEncoder, name: str) -> Features:
        real = self.real["train"]
        width = network.embed_images(real.inputs(np.arange(1), network)).shape[1]
        return self._noise(3, len(real), (width,))

    def _noise(self, seed: int, count: int, shape: Sequence[int]) -> Features:
        rows = np.random.default_rng(seed).standard_normal((DISTINCT, *shape))
        return cast(Features, Noise(count, rows.astype(np.float32)))

    def texts(self, name: str) -> Features:
        training = training_text(self.text_trunk, self.config.encoder.scope)
        if training is None:
            return super().texts(name)
        known = training.tokens(
            ["a made-up caption of a few words"], self.config.encoder.text_length
        )
        rows = np.random.default_rng(2).integers(
            known.max() + 1, size=(DISTINCT, known.shape[1]), dtype=known.dtype
        )
        return cast(Features, Noise(len(self.pairs.splits[name]), rows))
