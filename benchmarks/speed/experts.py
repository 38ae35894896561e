"""An epoch of an expert: features computed once, images decoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.speed.loading import MEAN, STD, plain_batches, write_jpegs, write_split
from benchmarks.speed.ratio import Ratio, side_by_side
from lors.encoders import DualEncoder, EncodedSplit
from lors.encoders.image import feature_size, image_trunk
from lors.losses import nce
from lors.system.seeding import global_seed
from lors.training import Batch, sgd, train_step

__all__ = ["Problem", "ratios"]

TEXT, JOINT, RATE = 384, 256, 0.01


class Problem:
    """Scenes as files and as ours keeps them, and networks of one architecture.

    Args:
        folder: for the files.
        trunk: timm's name of the image trunk; it has no pretrained weights.
        scope: ``heads`` or ``image``.
        count: how many images.
        size: their side.
        batch_size: m.
    """

    def __init__(
        self, folder: Path, trunk: str, scope: str, count: int, size: int, batch_size: int
    ) -> None:
        self.scope, self.size, self.batch_size = scope, size, batch_size
        self.trunk = trunk
        self.files = write_jpegs(folder, count)
        with global_seed("experts benchmark"):
            texts = torch.randn(count, TEXT).numpy()
        pixels = replace(write_split(self.files, size), texts=texts)
        self.real = pixels if scope == "image" else self._features(pixels)
        epoch = list(self.real.epoch(self.model(), batch_size, "one", False, 0))
        self.order = [int(i) for index, _, _ in epoch for i in index]
        self.texts = torch.cat([texts for _, _, texts in epoch])

    def model(self) -> DualEncoder:
        """A fresh network."""
        with global_seed("experts benchmark"):
            trunk = image_trunk(self.trunk, None, self.size)
            head, text = nn.Linear(feature_size(trunk), JOINT), nn.Linear(TEXT, JOINT)
        trains = self.scope == "image"
        return DualEncoder(
            nn.Sequential(trunk, head) if trains else head,
            text,
            trunk=None if trains else trunk,
            normalised_by=(MEAN, STD),
        )

    def fast(self, model: DualEncoder) -> None:
        """Ours: what is frozen or decoded was stored before the first epoch."""
        optimizer = sgd(model, (RATE, RATE))
        for index, inputs, texts in self.real.epoch(model, self.batch_size, "one", False, 0):
            train_step(model, optimizer, Batch(inputs, texts, torch.eye(len(index))), nce)

    def plain(self, model: DualEncoder) -> None:
        """Every step decodes its images and runs them through the trunk, frozen or not."""
        optimizer = sgd(model, (RATE, RATE))
        for images, texts in self.plain_epoch():
            optimizer.zero_grad()
            nce(model(self.encode(model, images), texts)).backward()
            optimizer.step()

    def plain_epoch(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of our epoch, loaded as published code does."""
        images = plain_batches(self.files, self.order, self.batch_size, self.size, augmented=False)
        return zip(images, self.texts.split(self.batch_size), strict=True)

    def encode(self, model: DualEncoder, images: Tensor) -> Tensor:
        """What the trainable part takes."""
        with torch.no_grad():
            return images if model.trunk is None else model.trunk(images)

    def floor(self, model: DualEncoder) -> Callable[[], None]:
        """One forward and backward pass of trunk and heads on a batch that is there."""
        images = torch.randn(self.batch_size, 3, self.size, self.size)
        texts = torch.randn(self.batch_size, TEXT)
        return lambda: nce(model(self.encode(model, images), texts)).backward()

    def _features(self, pixels: EncodedSplit) -> EncodedSplit:
        inputs = pixels.inputs(np.arange(len(pixels)), self.model())
        return replace(pixels, images=inputs.detach().numpy())


def ratios(
    rounds: int,
    trunk: str = "nf_resnet26",
    count: int = 128,
    size: int = 64,
    batch_size: int = 64,
) -> list[Ratio]:
    """One epoch on both sides.

    What ours makes once for all epochs of all experts, the cache and the features, is not timed;
    the reference decodes in both scopes.
    """

    def line(scope: str) -> Ratio:
        with TemporaryDirectory() as folder:
            problem = Problem(Path(folder), trunk, scope, count, size, batch_size)
            model = problem.model()
            return side_by_side(
                f"scope {scope}: {count} images at {size} px, {trunk}",
                lambda: problem.fast(model),
                lambda: problem.plain(model),
                rounds,
                floor=problem.floor(model),
                batches=-(-count // batch_size),
            )

    return [line(scope) for scope in ("heads", "image")]
