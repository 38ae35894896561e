"""Embeddings that the user already has: no images, no captions, no trunks.

Files below the root, each a name or a pattern of shards such as ``img_emb/img_emb_{0..9}.npy``:
.npy; .safetensors (its only tensor, or the one named like the key); .parquet, .arrow or .feather
(its only column of lists, or the one named like the key):

- ``images`` of shape (M, f);
- ``texts`` of shape (M, d) or, with several captions per image, (M, captions, d), where row i
  belongs to row i of the images; or any number (C, d), with
- ``owner`` of shape (C,): the image of each caption, a row of the same shard, ascending;
- ``captions``, if their words are to be shown: ``pairs-*.jsonl`` as ``lors encode`` writes them,
  or the column ``caption`` of a .csv, .jsonl, .parquet, .arrow or .feather file.

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
from lors.data.captions import ShardedCaptions, Words, words_of
from lors.data.files import root_folder
from lors.data.pairs import Decoded, Split
from lors.data.parts import Reader, kept_parts, opened_numbers
from lors.data.patterns import matching_files
from lors.data.problems import collecting
from lors.data.rows import unmatched
from lors.data.shards import Features, Shard, ShardedRows, shard_names
from lors.data.source import Shapes, Source
from lors.data.splitting import split_indices
from lors.files.cache import fingerprint
from lors.files.digests import file_digests
from lors.system.errors import InputError, suggestion
from lors.system.progress import Progress, Silent

__all__ = [
    "ENCODED",
    "SHARDS",
    "SOURCE",
    "GivenEmbeddings",
    "embedding_shapes",
    "given_split",
    "load_embeddings",
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
    with collecting(config, progress) as problems:
        reader = Reader(root, problems, progress)
        found = {split: _find(reader, split, sides) for split, sides in patterns.items()}
        problems.settle(reader.count, "embeddings")
    for sentence in reader.warnings:
        progress.say(sentence)
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
            found[split, side] = [
                opened_numbers(root, path, side, Silent()).shape for path in files
            ]
        if "owner" not in sides:
            where = f"data.annotations.{SPLITS[split]}owner"
            for shapes in zip(found[split, "images"], found[split, "texts"], strict=False):
                if sentence := unmatched(*shapes, where):
                    raise InputError(sentence)
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


def _find(reader: Reader, split: str, patterns: Mapping[str, str]) -> GivenEmbeddings:
    files = {}
    for side in (side for side in ENCODED if side in patterns):
        where = f"data.annotations.{SPLITS[split]}{side}"
        files[side] = matching_files(reader.root, patterns[side], where)
        if len(files[side]) != len(files["images"]):
            raise InputError(
                f"{where}: {patterns[side]!r} stands for {len(files[side])} files and "
                f"{patterns['images']!r} for {len(files['images'])}: give as many of each, in the "
                "same order"
            )
    owners = files.get("owner", [None] * len(files["images"]))
    found = zip(files["images"], files["texts"], owners, strict=True)
    parts = [reader.part(*paths, f"data.annotations.{SPLITS[split]}owner") for paths in found]
    reader.warn(parts, split)
    images = _joined([part.images for part in parts], "image")
    texts = _joined([part.texts for part in parts], "text")
    counts = np.concatenate([part.counts for part in parts])
    words = words_of(files["captions"], parts, counts) if "captions" in files else None
    numbers = [(side, paths) for side, paths in files.items() if side != "captions"]
    if reader.problems.skip and any(part.is_bad() for part in parts):
        kept = kept_parts(parts)
        images, texts, counts = images.of(kept.images), texts.of(kept.texts), kept.counts
        words = None if words is None else words.of(kept.texts)
    return GivenEmbeddings(images, texts, counts, words, numbers)


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


SOURCE = Source(load_embeddings, features=True, shapes=embedding_shapes)
