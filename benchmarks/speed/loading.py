"""Data loading: batches from the cache of decoded images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import transforms

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.data.scenes import draw, make_scene
from lors.encoders import DualEncoder, EncodedSplit

__all__ = ["MEAN", "STD", "plain_batches", "ratios", "write_jpegs", "write_split"]

MEAN, STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)
BICUBIC = transforms.InterpolationMode.BICUBIC


def write_jpegs(folder: Path, count: int, width: int = 500) -> list[Path]:
    """Drawn scenes as files of the size that photos of Flickr have."""
    files = [folder / f"{index}.jpg" for index in range(count)]
    for index, file in enumerate(files):
        image = draw(make_scene(0, index), 0, index)
        image.resize((width, width * 3 // 4), Image.Resampling.BICUBIC).save(file, quality=95)
    return files


def write_split(files: Sequence[Path], size: int) -> EncodedSplit:
    """The same images as ours reads them: decoded, resized, in one file, memory-mapped."""
    pixels = [Image.open(file).resize((size, size), Image.Resampling.BICUBIC) for file in files]
    path = files[0].with_name("images.npy")
    np.save(path, np.stack([np.asarray(image).transpose(2, 0, 1) for image in pixels]))
    texts = np.zeros((len(files), 1), np.float32)
    return EncodedSplit(
        np.load(path, mmap_mode="r", allow_pickle=False), texts, np.arange(len(files))
    )


def plain_transform(size: int, augmented: bool) -> Callable[[Image.Image], Tensor]:
    """As published code does it, image by image."""
    drawn = [
        transforms.RandomResizedCrop(size, scale=(0.5, 1.0), interpolation=BICUBIC),
        transforms.RandomHorizontalFlip(),
        transforms.RandAugment(2, 5),
    ]
    resized = [transforms.Resize((size, size), interpolation=BICUBIC)]
    last = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    transform: Callable[[Image.Image], Tensor] = transforms.Compose(
        [*(drawn if augmented else resized), *last]
    )
    return transform


def plain_batches(
    files: Sequence[Path], order: Sequence[int], batch_size: int, size: int, augmented: bool
) -> Iterator[Tensor]:
    """Every image opened, decoded and transformed when its batch wants it."""
    transform = plain_transform(size, augmented)
    for start in range(0, len(order), batch_size):
        here = order[start : start + batch_size]
        yield torch.stack([transform(Image.open(files[i]).convert("RGB")) for i in here])


def ratios(rounds: int, count: int = 256, size: int = 224, batch_size: int = 64) -> list[Ratio]:
    """An epoch of batches; the cache, made once for all epochs, is there already.

    Augmented, the two differ in what they crop: ours the cached image, the reference the file's.
    """
    model = DualEncoder(nn.Linear(1, 1), nn.Linear(1, 1), normalised_by=(MEAN, STD))
    with TemporaryDirectory() as folder:
        files = write_jpegs(Path(folder), count)
        split = write_split(files, size)

        def line(augmented: bool) -> Ratio:
            return side_by_side(
                f"{count} images at {size} px, {'augmented' if augmented else 'as they are'}",
                lambda: list(split.epoch(model, batch_size, "one", augmented, 0)),
                lambda: list(plain_batches(files, range(count), batch_size, size, augmented)),
                rounds,
            )

        return [line(augmented) for augmented in (False, True)]
