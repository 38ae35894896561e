"""How varied the images of a dataset are in the eyes of an encoder.

The paper (appendix A, Dataset Variance) finds pairs more varied than the classes of classification
data, and explains by it why matching gradients or distributions fails on pairs.

Which variance: the mean squared distance to the mean (of the own class, for labelled data), divided
by the number of dimensions, of embeddings that are *not* normalised. The paper does not say, but
only this fits its numbers. Unit vectors have at most 1/1024 = 9.8e-4 per dimension in the 1,024 of
CLIP's ResNet-50, and the table has up to 17.8e-4; not divided, 17.8e-4 would make all images
alike. And the embeddings of CLIP's ViTs, whose length is of the order of 10, would then have a
variance of tens, not of 0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from lors.config import Config
from lors.data import Split, load_pairs
from lors.data.labelled import LabelledImages, load_labelled
from lors.encoders.features import of_pixels
from lors.encoders.image import image_trunk
from lors.encoders.open_clip_text import OpenClipText
from lors.encoders.scorer import KIND as OPEN_CLIP
from lors.encoders.scorer import embed_pixels
from lors.setting import resolve
from lors.show.analysis.rows import Row, read_rows
from lors.system.devices import find_device
from lors.system.progress import Progress, Silent
from lors.system.seeding import global_seed

__all__ = ["RunningVariance", "build_encoder", "dataset_variance", "merged"]

Encode = Callable[[Tensor], Tensor]
Read = Callable[[range], tuple[Tensor, np.ndarray]]
BATCH = 64


class RunningVariance:
    """Mean squared distance to the own class's mean, per dimension, in one pass over the data.

    >>> variance = RunningVariance()
    >>> variance.add(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0, 0]))
    >>> variance.value()
    0.5
    """

    def __init__(self) -> None:
        self._origin: np.ndarray | None = None
        self._squares = 0.0
        self._sums: dict[int, np.ndarray] = {}
        self._counts: dict[int, int] = {}

    def add(self, embeddings: np.ndarray, labels: np.ndarray) -> None:
        """Take a batch into account. Shapes: (b, d), (b,)"""
        rows = np.asarray(embeddings, np.float64)
        if self._origin is None:  # near the mean, where sums of squares lose no digits
            self._origin = rows.mean(0)
        rows = rows - self._origin
        self._squares += float((rows**2).sum())
        for label in np.unique(labels).tolist():
            own = rows[labels == label]
            self._sums[label] = self._sums.get(label, 0.0) + own.sum(0)
            self._counts[label] = self._counts.get(label, 0) + len(own)

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @property
    def dimensions(self) -> int:
        return 0 if self._origin is None else len(self._origin)

    def value(self) -> float:
        """Σ_i ‖x_i - mean of its class‖² / (M d), by Σ‖x‖² - Σ_c ‖sum of c‖² / size of c."""
        between = sum(
            float((total**2).sum()) / self._counts[label] for label, total in self._sums.items()
        )
        return max(0.0, self._squares - between) / (self.count * self.dimensions)


def dataset_variance(
    config: Config,
    encoders: Sequence[str] = (),
    labelled: Sequence[str] = (),
    root: Path = Path(),
    progress: Progress | None = None,
) -> list[Row]:
    """Total variance of pairs and intra-class variance of labelled datasets, by each encoder.

    Args:
        config: its training split are the pairs; images of all datasets take its image size.
        encoders: ``open_clip:ARCHITECTURE/TAG``, or ``NAME`` or ``NAME@WEIGHTS`` for a timm model;
            the image trunk of the configuration if none is given.
        labelled: names in ``LABELLED``.
        root: the folder below which they lie.
        progress: reports long-running work.
    """
    config, progress = resolve(config), progress or Silent()
    size, data = config.encoder.size(), {name: load_labelled(name, root) for name in labelled}
    split = load_pairs(config.data, size, progress).splits["train"]
    weights = config.encoder.image_weights
    own = config.encoder.image if weights is None else f"{config.encoder.image}@{weights}"
    names = ["given"] if split.texts is not None else encoders or [own]
    rows = []
    for name in names:
        encode = build_encoder(name, size, find_device(config.device))
        found = _variance(len(split), partial(_pairs_at, split), encode, progress)
        rows.append(_row(config.data.title(), "pairs", name, found))
        for dataset, images in data.items():
            found = _variance(len(images), partial(_labelled_at, images, size), encode, progress)
            rows.append(_row(dataset, "labelled", name, found))
    return rows


def merged(rows: Sequence[Row], path: Path) -> list[Row]:
    """Rows with those of other datasets and encoders that a table already holds put before them."""
    found = read_rows(path, list(rows[0])) if path.is_file() else []
    new = {(row["dataset"], row["encoder"]) for row in rows}
    return [*(row for row in found if (row["dataset"], row["encoder"]) not in new), *rows]


def build_encoder(name: str, size: int, device: torch.device) -> Encode:
    """A function of uint8 pixels, not normalised, or of given features, which it leaves alone.

    Raises:
        InputError: an unknown name, or weights that are not there.
    """
    if name == "given":
        return lambda features: features
    if name.startswith(OPEN_CLIP):
        OpenClipText.check(name.removeprefix(OPEN_CLIP))
        clip = OpenClipText(name.removeprefix(OPEN_CLIP))
        clip.model.to(device)
        return lambda pixels: embed_pixels(clip, pixels.to(device))
    trunk_name, _, weights = name.partition("@")
    with global_seed(0, "trunk"):
        trunk = image_trunk(trunk_name, weights or None, size)
    return of_pixels(trunk.eval().to(device))


def _variance(count: int, read: Read, encode: Encode, progress: Progress) -> RunningVariance:
    """The variance of ``count`` images, of which never more than a batch is in memory."""
    variance, starts = RunningVariance(), range(0, count, BATCH)
    for start in progress.track(starts, "encode images", len(starts)):
        images, labels = read(range(start, min(start + BATCH, count)))
        variance.add(encode(images).numpy(), labels)
    return variance


def _pairs_at(split: Split, index: range) -> tuple[Tensor, np.ndarray]:
    """Pixels, or given features; all pairs are one class."""
    images = np.array(split.images[index.start : index.stop])
    return torch.from_numpy(images), np.zeros(len(index), np.int64)


def _labelled_at(data: LabelledImages, size: int, index: range) -> tuple[Tensor, np.ndarray]:
    """Pixels resized as those of pairs are, and classes."""

    def read(i: int) -> tuple[np.ndarray, int]:
        image, label = data[i]
        resized = image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
        return np.asarray(resized).transpose(2, 0, 1), label

    with ThreadPoolExecutor() as pool:
        pixels, labels = zip(*pool.map(read, index), strict=True)
    return torch.from_numpy(np.stack(pixels)), np.array(labels)


def _row(dataset: str, kind: str, encoder: str, found: RunningVariance) -> Row:
    return {
        "dataset": dataset,
        "kind": kind,
        "images": found.count,
        "encoder": encoder,
        "dimensions": found.dimensions,
        "variance": found.value(),
    }
