"""Embeddings that the user already has: no images, no captions, no trunks.

Files below the root, .npy or .safetensors (its only tensor, or the one named like the key), each a
name or a pattern of shards such as ``img_emb/img_emb_{0..9}.npy``:

- ``images`` of shape (M, f);
- ``texts`` of shape (M, d) or, with several captions per image, (M, captions, d), where row i
  belongs to row i of the images; or any number (C, d), with
- ``owner`` of shape (C,): the image of each caption, a row of the same shard, ascending;
- ``captions``, if their words are to be shown: ``pairs-*.jsonl`` as ``lors encode`` writes them.

Shards correspond in their order. A val or test split of its own is ``val_images`` and so on;
without any of these settings, they are read as ``lors encode`` writes them. What is larger than
``IN_MEMORY`` stays in its files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lors.config import DataConfig
from lors.data.cache import fingerprint
from lors.data.captions import ShardedCaptions, Words
from lors.data.files import root_folder
from lors.data.pairs import Decoded, Split
from lors.data.patterns import matching_files
from lors.data.shards import Features, Shard, ShardedRows, shard_names
from lors.data.source import Shapes, Source
from lors.data.splitting import split_indices
from lors.files.arrays import read_array, read_tensor
from lors.files.digests import file_digests
from lors.system.errors import InputError, suggestion
from lors.system.progress import Progress

__all__ = [
    "ENCODED",
    "SHARDS",
    "SOURCE",
    "GivenEmbeddings",
    "embedding_shapes",
    "given_split",
    "load_embeddings",
    "owner_counts",
]

ENCODED = {
    "images": "images-*.npy",
    "texts": "texts-*.npy",
    "owner": "owner-*.npy",
    "captions": "pairs-*.jsonl",
}
"""What ``lors encode`` writes below the folder of a split."""
SHARDS = "shards.txt"
"""There, too: the names of all shards that the split is to have, one per line."""
IN_MEMORY = 128 * 2**20
"""Bytes up to which the images or the texts of a split are held in memory."""
SPLITS = {"train": "", "val": "val_", "test": "test_"}
"""What the settings of a split start with."""


@dataclass(frozen=True)
class GivenEmbeddings:
    """All pairs of a split as given.

    Args:
        images: Shape: (M, f)
        texts: Shape: (C, d)
        counts: captions of each image. Shape: (M,)
        words: of the captions, if they are known.
        numbers: the files, by side, if they are in files; words change no number.
    """

    images: ShardedRows
    texts: ShardedRows
    counts: np.ndarray
    words: ShardedCaptions | Words | None = None
    numbers: Sequence[tuple[str, list[Path]]] = ()


def load_embeddings(config: DataConfig, progress: Progress) -> Decoded:
    """The embeddings; splits that are not given are held out from train by a seed."""
    root = root_folder(config)
    patterns = _patterns(root, config)
    found = {split: _find(root, split, sides) for split, sides in patterns.items()}
    numbers = {f"{split} {side}": files for split in found for side, files in found[split].numbers}
    digests = file_digests(root, [file for files in numbers.values() for file in files], progress)
    for side in ("images", "texts"):
        widths = {split: getattr(given, side).shape[1] for split, given in found.items()}
        if len(set(widths.values())) > 1:
            raise InputError(f"the {side} of the splits have rows of different lengths: {widths}")
    chosen = split_indices({split: len(given.images) for split, given in found.items()}, config)
    content = fingerprint(*(f"{side} {len(files)}" for side, files in numbers.items()), *digests)
    used = ", ".join(f"{len(rows):,} {name}" for name, (_, rows) in chosen.items())
    texts = sum(len(given.texts) for given in found.values())
    images = sum(len(given.images) for given in found.values())
    progress.say(f"Read embeddings of {texts:,} texts and {images:,} images: {used}.")
    return Decoded(
        fingerprint(content, repr(config.holdout), repr(config.seed), repr(config.pairs)),
        {
            name: given_split(found[given], rows, fingerprint(name, content))
            for name, (given, rows) in chosen.items()
        },
    )


def embedding_shapes(config: DataConfig) -> Shapes:
    """How many there are and how long they are, by the headers of the files alone."""
    root = root_folder(config)
    found = {}
    for split, sides in _patterns(root, config).items():
        for side in ("images", "texts"):
            where = f"data.annotations.{SPLITS[split]}{side}"
            files = matching_files(root, sides[side], where)
            found[split, side] = [_opened(path, side).shape for path in files]
    counts = {split: sum(shape[0] for shape in found[split, "images"]) for split, _ in found}
    _, train = split_indices(counts, config)["train"]
    widths = (found["train", side][0][-1] for side in ("images", "texts"))
    return Shapes(len(train), *widths)


def _patterns(root: Path, config: DataConfig) -> dict[str, dict[str, str]]:
    """The patterns of each split, by side."""
    asked = dict(config.annotations)
    if not asked:
        asked = {
            start + side: f"{split}/{pattern}"
            for split, start in SPLITS.items()
            for side, pattern in ENCODED.items()
            if (root / split).is_dir()
        }
        _check_complete(root)
    known = {start + side: (split, side) for split, start in SPLITS.items() for side in ENCODED}
    patterns: dict[str, dict[str, str]] = {}
    for key, pattern in asked.items():
        if key not in known:
            raise InputError(f"unknown setting data.annotations.{key}{suggestion(key, known)}")
        split, side = known[key]
        patterns.setdefault(split, {})[side] = pattern
    for split in dict.fromkeys(["train", *patterns]):
        for side in ("images", "texts"):
            if side not in patterns.get(split, {}):
                raise InputError(
                    f"data source 'embeddings' needs data.annotations.{SPLITS[split]}{side}, a "
                    "file or a pattern of shards"
                )
    return patterns


def _check_complete(root: Path) -> None:
    """Refuse what ``lors encode`` has not finished."""
    for path in (root / split / SHARDS for split in SPLITS):
        names = shard_names(path)
        files = [path.with_name(ENCODED["captions"].replace("*", name)) for name in names]
        missing = sum(not file.is_file() for file in files)
        if missing:
            raise InputError(
                f"{missing} of the {len(names)} shards in {str(path.parent)!r} are not encoded "
                "yet: let lors encode finish, or name those to use by data.annotations"
            )


def _find(root: Path, split: str, patterns: Mapping[str, str]) -> GivenEmbeddings:
    files = {}
    for side in (side for side in ENCODED if side in patterns):
        where = f"data.annotations.{SPLITS[split]}{side}"
        files[side] = matching_files(root, patterns[side], where)
        if len(files[side]) != len(files["images"]):
            raise InputError(
                f"{where}: {patterns[side]!r} stands for {len(files[side])} files and "
                f"{patterns['images']!r} for {len(files['images'])}: give as many of each, in the "
                "same order"
            )
    owners = files.get("owner", [None] * len(files["images"]))
    found = zip(files["images"], files["texts"], owners, strict=True)
    images, texts, counts = zip(*(_shard(*paths) for paths in found), strict=True)
    both = np.concatenate(counts)
    words = None
    if "captions" in files:
        words = ShardedCaptions(files["captions"], [shard.count for shard in images], both)
    numbers = [(side, paths) for side, paths in files.items() if side != "captions"]
    return GivenEmbeddings(_joined(images, "image"), _joined(texts, "text"), both, words, numbers)


def _shard(images: Path, texts: Path, owner: Path | None) -> tuple[Shard, Shard, np.ndarray]:
    """The images and texts of one shard, and how many captions each image has."""
    image, text = _read(images, "images"), _read(texts, "texts")
    if image.ndim != 2 or text.ndim not in (2, 3) or (owner is None and len(image) != len(text)):
        raise InputError(
            f"image embeddings {image.shape} and text embeddings {text.shape} do not fit: give "
            "(M, f) and (M, d) or (M, captions, d)"
        )
    if text.ndim == 3 and not text.shape[1]:
        raise InputError(f"the text embeddings {str(texts)!r} {text.shape} give images no caption")
    shards = Shard.of(image, images), Shard.of(text, texts)
    if owner is None:
        captions = 1 if text.ndim == 2 else text.shape[1]
        return *shards, np.full(len(image), captions, np.int32)
    return *shards, _counts(owner, len(image), shards[1].count)


def _counts(path: Path, images: int, texts: int) -> np.ndarray:
    """How many captions each image has, by the image of each caption. Shape: (M,)"""
    return owner_counts(read_array(path), images, texts, str(path))


def owner_counts(owner: np.ndarray, images: int, texts: int, where: str) -> np.ndarray:
    """How many captions each image has, by the image of each caption. Shape: (C,) -> (M,)

    Raises:
        InputError: they are no such numbers; ``where`` names them.
    """
    if owner.shape != (texts,) or owner.dtype.kind not in "iu":
        raise InputError(
            f"the owners {where!r} are {owner.dtype} of shape {owner.shape}: give the image of "
            f"each of the {texts} texts, a whole number"
        )
    if texts and not (np.diff(owner.astype(np.int64)) >= 0).all():
        raise InputError(f"the owners {where!r} must ascend: sort the texts by their images")
    if texts and not 0 <= owner[0] <= owner[-1] < images:
        raise InputError(
            f"the owners {where!r} run from {owner[0]} to {owner[-1]}, but there are {images} "
            "images: count from 0 (in each shard)"
        )
    counts = np.bincount(owner, minlength=images).astype(np.int32)
    if not counts.all():
        raise InputError(
            f"image {counts.argmin()} of the owners {where!r} has no caption: leave it out"
        )
    return counts


def _joined(shards: Sequence[Shard], side: str) -> ShardedRows:
    widths = sorted({shard.width for shard in shards})
    if len(widths) > 1:
        raise InputError(
            f"the shards hold {side} embeddings of {widths[0]} and of {widths[-1]} numbers: all "
            "must come from one encoder"
        )
    return ShardedRows(shards)


def given_split(given: GivenEmbeddings, rows: np.ndarray, key: str) -> Split:
    counts = given.counts[rows].astype(np.int64)
    first = np.cumsum(given.counts, dtype=np.int64)[rows] - counts
    owner = np.repeat(np.arange(len(rows)), counts)
    texts = np.arange(len(owner)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    return Split(
        images=_held(given.images.of(rows)),
        captions=[] if given.words is None else given.words.of(texts),
        owner=owner,
        fingerprint=fingerprint(key, hashlib.sha256(rows.tobytes()).hexdigest()),
        texts=_held(given.texts.of(texts)),
    )


def _held(rows: ShardedRows) -> Features:
    return rows[:] if rows.nbytes <= IN_MEMORY else rows


def _read(path: Path, side: str) -> np.ndarray:
    """An array of floating-point numbers that are finite as float32, too."""
    array = _opened(path, side)
    largest = float(np.finfo(np.float32).max)  # NaN is in no range either
    if not all(
        -largest <= float(block.min()) <= float(block.max()) <= largest
        for block in Shard.of(array, path).blocks()
    ):
        raise InputError(f"the embeddings {str(path)!r} must be finite floating-point numbers")
    return array


def _opened(path: Path, side: str) -> np.ndarray:
    """An array of floating-point numbers, memory-mapped: none of them is read."""
    array = read_tensor(path, side) if path.suffix == ".safetensors" else read_array(path)
    if not (np.issubdtype(array.dtype, np.floating) and array.ndim > 0 and array.shape[-1] > 0):
        raise InputError(f"the embeddings {str(path)!r} must be finite floating-point numbers")
    return array


SOURCE = Source(load_embeddings, features=True, shapes=embedding_shapes)
