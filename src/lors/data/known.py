"""Flickr30k and COCO under their usual file names, with the Karpathy splits.

The annotations are the files of BLIP (https://arxiv.org/abs/2201.12086), which name each image
relative to the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lors.config import DataConfig
from lors.data.files import root_folder
from lors.data.karpathy import read_karpathy
from lors.data.pairs import Item
from lors.data.source import Source
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["COCO_SOURCE", "FLICKR30K_SOURCE", "read_coco", "read_flickr30k"]

ANNOTATIONS = "https://storage.googleapis.com/sfr-vision-language-research/datasets/"


@dataclass(frozen=True)
class Known:
    """A published dataset.

    Args:
        title: what people call it.
        annotations: split -> file; all of them are below ``ANNOTATIONS``.
        images: folder of images -> how to get it.
    """

    title: str
    annotations: Mapping[str, str]
    images: Mapping[str, str]


FLICKR30K = Known(
    "Flickr30k",
    {split: f"flickr30k_{split}.json" for split in ("train", "val", "test")},
    {
        "flickr30k-images": "ask the authors for the images with the form at "
        "https://shannon.cs.illinois.edu/DenotationGraph/ and unpack them"
    },
)
COCO = Known(
    "COCO",
    {split: f"coco_karpathy_{split}.json" for split in ("train", "val", "test")},
    {
        folder: f"download {folder}.zip from https://cocodataset.org/#download and unpack it"
        for folder in ("train2014", "val2014")
    },
)


def read_flickr30k(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """Flickr30k: 29,000 / 1,014 / 1,000 images with five captions each."""
    return _read(FLICKR30K, config, progress)


def read_coco(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """COCO captions: 113,287 / 5,000 / 5,000 images with five captions each."""
    return _read(COCO, config, progress)


def _read(known: Known, config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    root = root_folder(config)
    for name in known.annotations.values():
        if not (root / name).is_file():
            raise _missing(known, root / name, f"download {ANNOTATIONS}{name}")
    for name, how in known.images.items():
        if not (root / name).is_dir():
            raise _missing(known, root / name, how)
    annotations = {"annotations": dict(known.annotations)}
    return read_karpathy(config.model_copy(update=annotations), progress)


def _missing(known: Known, path: Path, how: str) -> InputError:
    return InputError(
        f"{known.title}: {path.name!r} is missing: {how}, so that it is {str(path)!r}"
    )


FLICKR30K_SOURCE, COCO_SOURCE = Source(read_flickr30k), Source(read_coco)
