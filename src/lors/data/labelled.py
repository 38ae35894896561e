"""The class-labelled datasets whose variance the paper compares with that of pairs.

They are for analysis only (the paper's appendix, Dataset Variance): they have labels, not captions.
Every dataset is used whole where the paper's counts say so (DTD, Caltech-101 with its background
class, MIT-indoor, iNaturalist-18), and by its training split otherwise. Nothing is downloaded and
nothing is unpickled, which is why CIFAR is read in its binary version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image
from torchvision.datasets import ImageFolder, INaturalist

from lors.data.images import decode_image
from lors.system.errors import InputError, choose

__all__ = ["LABELLED", "Labelled", "LabelledImages", "load_labelled"]


class LabelledImages(Protocol):
    """What a torchvision dataset is: a sequence of (RGB image, class)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[Image.Image, int]: ...


def _decode(path: str) -> Image.Image:
    return decode_image(Path(path), path)


def _class_folders(folder: Path) -> LabelledImages:
    return ImageFolder(folder, loader=_decode)


@dataclass(frozen=True)
class Labelled:
    """A class-labelled dataset.

    Args:
        folder: where it lies below the root.
        download: what to download, and how to bring it there.
        open: makes the dataset from its folder.
    """

    folder: str
    download: str
    open: Callable[[Path], LabelledImages] = _class_folders


class CifarBinary:
    """CIFAR in the binary version of its authors: per image, the labels and 32 x 32 x 3 bytes.

    Args:
        folder: holds the files.
        pattern: which of them.
        labels: bytes before the pixels; the last of them is the class.
    """

    def __init__(self, folder: Path, pattern: str, labels: int) -> None:
        files = sorted(folder.glob(pattern))
        if not files:
            raise FileNotFoundError(f"it holds no {pattern}")
        records = [np.fromfile(file, np.uint8).reshape(-1, labels + 3 * 32 * 32) for file in files]
        self._records = np.concatenate(records)
        self._labels = labels

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int, /) -> tuple[Image.Image, int]:
        record = self._records[index]
        pixels = record[self._labels :].reshape(3, 32, 32).transpose(1, 2, 0)
        return Image.fromarray(np.ascontiguousarray(pixels)), int(record[self._labels - 1])


def _inaturalist(folder: Path) -> LabelledImages:
    dataset = INaturalist(folder.parent, folder.name, transform=_rgb)
    dataset.loader = _decode  # asked for only by newer versions of torchvision
    return dataset


def _rgb(image: Image.Image) -> Image.Image:
    return image.convert("RGB")


LABELLED = {
    "dtd": Labelled(
        "dtd/images",
        "unpack dtd-r1.0.1.tar.gz from https://www.robots.ox.ac.uk/~vgg/data/dtd/ in the root",
    ),
    "caltech101": Labelled(
        "caltech101/101_ObjectCategories",
        "unpack caltech-101.zip from https://data.caltech.edu/records/mzrjq-6wc02, and the "
        "101_ObjectCategories.tar.gz inside it",
    ),
    "mit-indoor": Labelled(
        "mit-indoor/Images",
        "unpack indoorCVPR_09.tar from https://web.mit.edu/torralba/www/indoor.html",
    ),
    "cifar10": Labelled(
        "cifar-10-batches-bin",
        "unpack cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html in the "
        "root",
        partial(CifarBinary, pattern="data_batch_*.bin", labels=1),
    ),
    "cifar100": Labelled(
        "cifar-100-binary",
        "unpack cifar-100-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html in the "
        "root",
        partial(CifarBinary, pattern="train.bin", labels=2),
    ),
    "inaturalist18": Labelled(
        "2018",
        "unpack train_val2018.tar.gz from https://github.com/visipedia/inat_comp/tree/master/2018 "
        "in the root and rename its folder train_val2018 to 2018",
        _inaturalist,
    ),
    "imagenet1k": Labelled(
        "imagenet/train",
        "unpack ILSVRC2012_img_train.tar from https://image-net.org/download, and each of the "
        "1,000 tar files inside it into a folder of its name",
    ),
}
"""Name -> dataset, in the order of the paper's table."""


def load_labelled(name: str, root: Path) -> LabelledImages:
    """A dataset of (RGB image, class) that lies below a root folder.

    Raises:
        InputError: unknown name, or the data is missing or incomplete; the message says what to
            download and where it goes.
    """
    labelled = choose(LABELLED, name, "labelled dataset")
    folder = root.expanduser() / labelled.folder
    if not folder.is_dir():
        raise InputError(
            f"the labelled dataset {name!r} is missing: {labelled.download}, so that its data "
            f"is in {str(folder)!r}"
        )
    try:
        return labelled.open(folder)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"cannot read the labelled dataset {name!r} in {str(folder)!r}: {error}; "
            f"once more, {labelled.download}"
        ) from None
