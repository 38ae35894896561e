"""Real pairs, wherever they are: in files of many kinds, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lors.config import DataConfig, names
from lors.data.arrays import decoded_arrays, given_arrays
from lors.data.decoding import decoded_items
from lors.data.embeddings import GivenEmbeddings
from lors.data.huggingface import object_items
from lors.data.objects import dataset_items, image_items
from lors.data.pairs import Decoded, Item
from lors.data.source import Source
from lors.data.splitting import split_items
from lors.data.telling import tell_of_items
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.registry import Registry

__all__ = ["ARRAYS", "OBJECTS", "SOURCES", "Pairs"]

SOURCES: Registry[Source] = names.SOURCES

Decode = Callable[[int], Decoded]
"""Decodes a dataset into the cache, given the side of the images in pixels."""


class Pairs:
    """A real dataset: images with one or more captions each, or embeddings of both.

    Splits that are not given are held out from train.

    >>> import numpy as np
    >>> Pairs.arrays(np.eye(30, 4), np.eye(30, 5))
    Pairs(arrays: 30 train)

    Args:
        settings: of the section ``data`` of a configuration.
        given: what is in memory, by split: items, or embeddings.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        given: Mapping[str, list[Item] | GivenEmbeddings] | None = None,
    ) -> None:
        self.settings = {k: v for k, v in settings.items() if v is not None}
        self.given = given

    def __repr__(self) -> str:
        source = self.settings.get("source", DataConfig().source)
        if self.given is None:
            where = self.settings.get("root") or self.settings.get("name")
            return f"Pairs({source}{f': {where}' if where else ''})"
        sizes = ", ".join(f"{_length(split):,} {name}" for name, split in self.given.items())
        return f"Pairs({source}: {sizes})"

    @property
    def features(self) -> bool:
        """Whether they are embeddings, which have no pixels."""
        return SOURCES.choose(self.settings.get("source", DataConfig().source)).features

    @classmethod
    def folder(cls, root: str | Path, table: str | None = None) -> Pairs:
        """A folder of images with a CSV or JSONL table of the columns image, caption and split.

        Args:
            root: the folder.
            table: the table in it, if it holds several.
        """
        annotations = None if table is None else {"all": table}
        return cls({"source": "table", "root": root, "annotations": annotations})

    @classmethod
    def karpathy(
        cls, root: str | Path, train: str, val: str | None = None, test: str | None = None
    ) -> Pairs:
        """Images with one JSON file per split, as those of Flickr8k, Flickr30k and COCO.

        Args:
            root: the folder that the files name images in.
            train: its annotations, below the root; and so on.
        """
        files = {"train": train, "val": val, "test": test}
        annotations = {split: file for split, file in files.items() if file is not None}
        return cls({"source": "karpathy", "root": root, "annotations": annotations})

    @classmethod
    def webdataset(
        cls, root: str | Path, train: str, val: str | None = None, test: str | None = None
    ) -> Pairs:
        """Tar files of images and captions, by patterns such as ``"train-{000..099}.tar"``."""
        patterns = {"train": train, "val": val, "test": test}
        annotations = {split: name for split, name in patterns.items() if name is not None}
        return cls({"source": "webdataset", "root": root, "annotations": annotations})

    @classmethod
    def huggingface(cls, dataset: Any, image: str = "image", caption: str = "caption") -> Pairs:
        """A dataset of the Hub by its name, or a ``datasets`` object in memory.

        Args:
            dataset: ``"owner/dataset"``; a ``Dataset``; or a ``DatasetDict`` of splits.
            image: the column of images.
            caption: the column of captions, each a text or a list of texts.
        """
        columns = {"image_column": image, "caption_column": caption}
        if isinstance(dataset, str):
            return cls({"source": "huggingface", "name": dataset, **columns})
        return cls({"source": "objects", **columns}, object_items(dataset, image, caption))

    @classmethod
    def embeddings(cls, root: str | Path, **files: str) -> Pairs:
        """Embeddings in files: ``images="images.npy"``, ``texts=…``, ``owner=…``, ``val_images=…``.

        Without names, those that ``lors encode`` writes.
        """
        return cls({"source": "embeddings", "root": root, "annotations": files})

    @classmethod
    def arrays(
        cls,
        images: Any,
        texts: Any,
        owner: Any = None,
        captions: Sequence[str] = (),
        val: Sequence[Any] | None = None,
        test: Sequence[Any] | None = None,
    ) -> Pairs:
        """Embeddings in memory: NumPy arrays, memory maps or tensors, of any scale.

        Args:
            images: Shape: (M, f)
            texts: Shape: (M, d); (M, captions, d); or (C, d) with
            owner: the image of each text, ascending. Shape: (C,)
            captions: the words of the texts, if they are to be shown. Length: C
            val: ``(images, texts)`` or ``(images, texts, owner)`` of a validation split.
            test: the same for a test split.

        Raises:
            InputError: shapes or types do not fit, or a number is not finite.
        """
        given = {"train": given_arrays(images, texts, owner, captions)}
        for name, split in (("val", val), ("test", test)):
            if split is not None:
                owners = split[2] if len(split) > 2 else None
                given[name] = given_arrays(split[0], split[1], owners, what=f"{name} ")
        return cls({"source": "arrays"}, given)

    @classmethod
    def images(
        cls,
        images: Sequence[Any],
        captions: Sequence[Any],
        val: tuple[Sequence[Any], Sequence[Any]] | None = None,
        test: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Pairs:
        """Lists of PIL images (or arrays of pixels) and of captions, a text or several each."""
        given = {"train": image_items(images, captions)}
        for name, split in (("val", val), ("test", test)):
            if split is not None:
                given[name] = image_items(*split, what=f"{name} ")
        return cls({"source": "objects"}, given)

    @classmethod
    def dataset(
        cls, train: Any, val: Any = None, test: Any = None, progress: Progress | None = None
    ) -> Pairs:
        """Datasets as PyTorch has them: a length, and rows of an image and a caption."""
        progress, splits = progress or Silent(), {"train": train, "val": val, "test": test}
        given = {
            name: dataset_items(split, name, progress)
            for name, split in splits.items()
            if split is not None
        }
        return cls({"source": "objects"}, given)

    def only_split(self) -> list[Item] | GivenEmbeddings:
        """All pairs as one split, where they are in memory and not divided.

        Raises:
            InputError: they are in files, or have several splits.
        """
        if self.given is None or len(self.given) != 1:
            raise InputError(f"give pairs in memory, without splits of their own, not {self!r}")
        (split,) = self.given.values()
        return split

    def find(self, config: DataConfig, progress: Progress) -> Decode:
        """List the pairs; decoding them, which is slow, is left to do.

        Args:
            config: the section ``data`` of a whole configuration.
            progress: reports long-running work, and what was read.

        Raises:
            InputError: unreadable files, or fewer pairs than asked for.
        """
        splits = self.items(config, progress)
        if isinstance(splits, Decoded):
            decoded = splits
            return lambda image_size: decoded
        items = splits
        return lambda image_size: decoded_items(items, image_size, config, progress)

    def items(self, config: DataConfig, progress: Progress) -> dict[str, list[Item]] | Decoded:
        """The pairs of each split before they are decoded; embeddings are as they are.

        See ``find`` for the arguments.
        """
        source = SOURCES.choose(config.source)
        found = source.read(config, progress) if self.given is None else _whole(self.given, config)
        if isinstance(found, Decoded):
            return found
        splits = split_items(found, config)
        if not source.built_in:
            tell_of_items(found, splits, progress)
        return splits


def _whole(
    given: Mapping[str, list[Item] | GivenEmbeddings], config: DataConfig
) -> dict[str, list[Item]] | Decoded:
    items = {name: split for name, split in given.items() if isinstance(split, list)}
    if items:
        return items
    arrays = {n: split for n, split in given.items() if isinstance(split, GivenEmbeddings)}
    return decoded_arrays(arrays, config)


def _length(split: list[Item] | GivenEmbeddings) -> int:
    return len(split) if isinstance(split, list) else len(split.images)


def _gone(config: DataConfig, progress: Progress) -> Decoded:
    raise InputError(
        "the real pairs were given in Python, not as files: give them again, as in "
        "lors.evaluate(distilled, test=(images, texts))"
    )


ARRAYS, OBJECTS = Source(_gone, features=True), Source(_gone)
