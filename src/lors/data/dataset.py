"""Real pairs, wherever they are: in files of many kinds, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lors.config import DataConfig, names
from lors.data.arrays import given_arrays
from lors.data.decoding import decoded_items
from lors.data.huggingface import object_items
from lors.data.in_memory import Given, given_splits, length, whole
from lors.data.objects import dataset_items, image_items
from lors.data.pairs import Decoded
from lors.data.problems import Skipped, keeping_skipped, skip_rows
from lors.data.source import Source
from lors.data.splitting import split_items
from lors.data.telling import tell_of_items
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.registry import Registry

__all__ = ["SOURCES", "Pairs"]

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
        skipped: rows that were left out of it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        given: Mapping[str, Given] | None = None,
        skipped: Sequence[Skipped] = (),
    ) -> None:
        self.settings = {k: v for k, v in settings.items() if v is not None}
        self.given = given
        self.left_out = tuple(skipped)

    def __repr__(self) -> str:
        source = self.settings.get("source", DataConfig().source)
        if self.given is None:
            where = self.settings.get("root") or self.settings.get("name")
            return f"Pairs({source}{f': {where}' if where else ''})"
        sizes = ", ".join(f"{length(split):,} {name}" for name, split in self.given.items())
        left_out = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"Pairs({source}: {sizes}{left_out})"

    @property
    def skipped(self) -> list[str]:
        """What is wrong with the rows in memory that ``skip_bad`` left out, a sentence for each."""
        return [str(problem) for each in self.left_out for problem in each.problems]

    @property
    def features(self) -> bool:
        """Whether they are embeddings, which have no pixels."""
        return SOURCES.choose(self.settings.get("source", DataConfig().source)).features

    @classmethod
    def folder(cls, root: str | Path, table: str | None = None) -> Pairs:
        """A folder of images with a CSV or JSONL table of the columns image, caption and split.

        >>> Pairs.folder("photos", "captions.csv")
        Pairs(table: photos)

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

        >>> Pairs.karpathy("flickr8k", "train.json", "val.json", "test.json")
        Pairs(karpathy: flickr8k)

        Args:
            root: the folder that the files name images in.
            train: the file of the training split, below the root.
            val: that of the validation split; default: held out from train.
            test: that of the test split; default: held out from train.
        """
        files = {"train": train, "val": val, "test": test}
        annotations = {split: file for split, file in files.items() if file is not None}
        return cls({"source": "karpathy", "root": root, "annotations": annotations})

    @classmethod
    def webdataset(
        cls, root: str | Path, train: str, val: str | None = None, test: str | None = None
    ) -> Pairs:
        """Tar files of images and captions.

        >>> Pairs.webdataset("shards", "train-{000..099}.tar")
        Pairs(webdataset: shards)

        Args:
            root: the folder of the files.
            train: a pattern of file names.
            val: likewise; default: held out from train.
            test: likewise; default: held out from train.
        """
        patterns = {"train": train, "val": val, "test": test}
        annotations = {split: name for split, name in patterns.items() if name is not None}
        return cls({"source": "webdataset", "root": root, "annotations": annotations})

    @classmethod
    def huggingface(
        cls, dataset: Any, image: str = "image", caption: str = "caption", skip_bad: bool = False
    ) -> Pairs:
        """A dataset of the Hub by its name, or a ``datasets`` object in memory.

        >>> Pairs.huggingface("owner/dataset", caption="text")
        Pairs(huggingface: owner/dataset)

        Args:
            dataset: ``"owner/dataset"``; a ``Dataset``; or a ``DatasetDict`` of splits.
            image: the column of images.
            caption: the column of captions, each a text or a list of texts.
            skip_bad: leave out rows that cannot be used, instead of refusing the dataset.
        """
        settings = {
            "image_column": image,
            "caption_column": caption,
            "skip_bad": skip_bad or None,
        }
        if isinstance(dataset, str):
            return cls({"source": "huggingface", "name": dataset, **settings})
        with keeping_skipped() as skipped:
            items = object_items(dataset, image, caption, skip_bad)
        return cls({"source": "objects", **settings}, items, skipped)

    @classmethod
    def embeddings(cls, root: str | Path, **files: str) -> Pairs:
        """Embeddings in files.

        >>> Pairs.embeddings("dump", images="images.npy", texts="texts.npy")
        Pairs(embeddings: dump)

        Args:
            root: the folder of the files.
            files: ``images``, ``texts``, ``owner``, ``captions``, ``val_images`` and so on;
                default: those that ``lors encode`` writes.
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
        skip_bad: bool = False,
    ) -> Pairs:
        """Embeddings in memory: NumPy arrays, memory maps or tensors, of any scale.

        >>> import numpy as np
        >>> Pairs.arrays(np.eye(9, 3), np.ones((9, 2, 4)), test=(np.eye(5, 3), np.ones((5, 4))))
        Pairs(arrays: 9 train, 5 test)

        Args:
            images: Shape: (M, f)
            texts: Shape: (M, d); (M, captions, d); or (C, d) with
            owner: the image of each text, ascending. Shape: (C,)
            captions: the words of the texts, if they are to be shown. Length: C
            val: ``(images, texts)`` or ``(images, texts, owner)`` of a validation split.
            test: the same for a test split.
            skip_bad: leave out rows that are not finite, instead of refusing the arrays.

        Raises:
            InputError: shapes or types do not fit, or a number is not finite.
        """
        with keeping_skipped() as skipped:
            given = {"train": given_arrays(images, texts, owner, captions, skip_bad=skip_bad)}
            for name, split in given_splits(
                val, test, "(images, texts), or (images, texts, owner)"
            ):
                owners = split[2] if len(split) > 2 else None
                given[name] = given_arrays(split[0], split[1], owners, (), f"{name} ", skip_bad)
        return cls({"source": "arrays", "skip_bad": skip_bad or None}, given, skipped)

    @classmethod
    def images(
        cls,
        images: Sequence[Any],
        captions: Sequence[Any],
        val: tuple[Sequence[Any], Sequence[Any]] | None = None,
        test: tuple[Sequence[Any], Sequence[Any]] | None = None,
        skip_bad: bool = False,
    ) -> Pairs:
        """A list of images and a list of captions.

        >>> from PIL import Image
        >>> some = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
        >>> Pairs.images(some, ["red", ["blue", "dark"], ""], skip_bad=True)
        Pairs(objects: 2 train, 1 skipped)

        Args:
            images: PIL images, paths of files, or arrays of pixels.
            captions: a text, or a list of texts, for each image.
            val: ``(images, captions)`` of a validation split.
            test: the same for a test split.
            skip_bad: leave out what cannot be used, instead of refusing the lists.
        """
        with keeping_skipped() as skipped:
            given = {"train": image_items(images, captions, skip_bad=skip_bad)}
            for name, split in given_splits(val, test, "(images, captions)"):
                given[name] = image_items(split[0], split[1], f"{name} ", skip_bad)
        return cls({"source": "objects", "skip_bad": skip_bad or None}, given, skipped)

    @classmethod
    def dataset(
        cls,
        train: Any,
        val: Any = None,
        test: Any = None,
        progress: Progress | None = None,
        skip_bad: bool = False,
    ) -> Pairs:
        """Datasets as PyTorch has them: a length, and rows of an image and a caption.

        >>> from PIL import Image
        >>> Pairs.dataset([(Image.new("RGB", (8, 8)), f"number {i}") for i in range(9)])
        Pairs(objects: 9 train)

        Args:
            train: the dataset.
            val: that of a validation split; default: held out from train.
            test: that of a test split; default: held out from train.
            progress: reports long-running work.
            skip_bad: leave out rows that cannot be used, instead of refusing the dataset.
        """
        progress, splits = progress or Silent(), {"train": train, "val": val, "test": test}
        with keeping_skipped() as skipped:
            given = {
                name: dataset_items(split, name, progress, skip_bad)
                for name, split in splits.items()
                if split is not None
            }
        return cls({"source": "objects", "skip_bad": skip_bad or None}, given, skipped)

    def only_split(self) -> Given:
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
        source = SOURCES.choose(config.source)
        for skipped in self.left_out:
            skip_rows(skipped, progress)
        found = source.read(config, progress) if self.given is None else whole(self.given, config)
        if isinstance(found, Decoded):
            decoded = found
            return lambda image_size: decoded
        splits = split_items(found, config)
        if not source.built_in:
            tell_of_items(found, splits, progress)
        return lambda image_size: decoded_items(splits, image_size, config, progress)
