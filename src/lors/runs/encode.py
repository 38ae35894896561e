"""Embeddings of WebDataset shards by frozen trunks: data larger than memory, encoded once.

Of each shard, four files: ``images-NAME.npy``, ``texts-NAME.npy``, ``owner-NAME.npy`` (the image of
each caption) and ``pairs-NAME.jsonl`` (its key and captions), which ``data.source=embeddings``
reads; and ``shard-NAME.txt``, which tells another shard of the same name. A shard is encoded by
whoever claims it first, a rank or any other process that works in the same folder; one that is
there is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.config import Config, DataConfig, difference
from lors.data import SOURCES
from lors.data.bad_row import BadRowError
from lors.data.decoded import pixels_or_error
from lors.data.embeddings import ENCODED, SHARDS
from lors.data.files import root_folder
from lors.data.pairs import Item
from lors.data.problems import Problems, collecting
from lors.data.shards import shard_names
from lors.data.webdataset import shard_items
from lors.encoders.features import of_pixels
from lors.encoders.folding import folded
from lors.encoders.image import frozen_trunk, trunk_key
from lors.encoders.text import TextTrunk, build_text_trunk, text_trunk_class
from lors.files.arrays import write_array
from lors.files.artifacts import remove_leftovers, write_text
from lors.files.digests import block_digest
from lors.setting import resolve
from lors.system.devices import find_device
from lors.system.errors import InputError
from lors.system.locks import locked, one_each
from lors.system.progress import Progress, Silent

__all__ = ["ORIGIN", "encode_shards"]

ORIGIN = "encoders.json"
"""Says which trunks the embeddings of a folder are of."""


class _Trunks(NamedTuple):
    """What encodes: pixels (m, 3, size, size) to features (m, f), captions to embeddings."""

    image: Callable[[Tensor], Tensor]
    size: int
    text: TextTrunk


class _Job(NamedTuple):
    """One shard, under which name and in which folder its embeddings are kept, by side."""

    shard: Path
    name: str
    folder: Path

    @property
    def files(self) -> dict[str, Path]:
        sides = ENCODED.items()
        return {side: self.folder / pattern.replace("*", self.name) for side, pattern in sides}

    @property
    def origin(self) -> Path:
        """Says which content the embeddings are of."""
        return self.folder / f"shard-{self.name}.txt"

    def done(self) -> bool:
        """Whether the embeddings are there.

        Raises:
            InputError: they are of a shard with another content.
        """
        if not all(path.is_file() for path in self.files.values()):
            return False
        if self.origin.is_file() and self.origin.read_text("utf-8") != block_digest(self.shard):
            raise InputError(
                f"{str(self.folder)!r} holds embeddings of another shard {self.shard.name!r} than "
                f"{str(self.shard)!r}: choose another --out, or delete it"
            )
        return True

    def claim(self, wait: bool = False) -> AbstractContextManager[bool]:
        """Whether this process is the one to encode the shard; see ``locks.locked``."""
        return locked(self.folder / f".{self.name}.lock", wait)


def encode_shards(
    config: Config, out: str | Path, progress: Progress | None = None, batch: int = 64
) -> None:
    """Embed the shards that are not there yet; under torchrun, ranks share them.

    Args:
        config: the shards, ``data.source=webdataset``, and the trunks.
        out: the folder for the embeddings: a folder of each split is made in it.
        progress: reports long-running work.
        batch: images decoded at a time.

    Raises:
        InputError: a damaged shard, a text trunk that must be fitted on all captions, or a folder
            with embeddings of other trunks.
    """
    config, out, progress = resolve(config), Path(out), progress or Silent()
    find_shards = SOURCES[config.data.source].shards
    if find_shards is None:
        raise InputError(
            f"lors encode reads shards: set data.source=webdataset, not {config.data.source!r}"
        )
    if text_trunk_class(config.encoder.text)[0].fitted:
        raise InputError(
            f"the text trunk {config.encoder.text} is fitted on all captions at once, which shards "
            "cannot give: set encoder.text=transformers:NAME or open_clip:NAME"
        )
    encoder = config.encoder.model_copy(update={"trains_from": None})  # the whole trunk
    root = root_folder(config.data)
    jobs = _jobs(root, find_shards(config.data), out)
    text = build_text_trunk(encoder, [])
    key = trunk_key(*encoder.trunk())
    _check_origin(out, {"image_trunk": key, "text_trunk": text.fingerprint})
    trunk = folded(frozen_trunk(encoder, find_device(config.device, config.dtype)), encoder.size())
    trunks = _Trunks(of_pixels(trunk), encoder.size(), text)
    _list_shards(jobs, out)
    todo = [job for job in jobs if not job.done()]
    work = partial(_encode, trunks=trunks, batch=batch, data=config.data, progress=progress)
    one_each(todo, _Job.claim, work, progress, "encode shards")


def _jobs(root: Path, shards: dict[str, list[Path]], out: Path) -> list[_Job]:
    jobs: dict[tuple[str, str], _Job] = {}
    for split, paths in shards.items():
        if split not in ("train", "val", "test"):
            raise InputError(f"split {split!r} is none of train, val, test: rename it")
        for shard in paths:
            name = str(shard.relative_to(root).with_suffix("")).replace(os.sep, "-")
            if (split, name) in jobs:
                raise InputError(
                    f"the shards {str(jobs[split, name].shard)!r} and {str(shard)!r} would both "
                    "be encoded under one name: rename one"
                )
            jobs[split, name] = _Job(shard, name, out / split)
    return list(jobs.values())


def _check_origin(out: Path, ours: dict[str, Any]) -> None:
    """Refuse a folder that holds something else than embeddings of the same trunks."""
    path = out / ORIGIN
    foreign = InputError(
        f"{str(out)!r} is not an empty folder and holds no embeddings of lors encode: choose "
        "another --out"
    )
    if out.exists() and not out.is_dir():
        raise foreign
    with locked(out / ".lock", wait=True):
        remove_leftovers(out, ORIGIN)
        if not path.is_file():
            if any(found.name[0] != "." for found in out.iterdir()):
                raise foreign
            write_text(path, json.dumps(ours, indent=2))
    try:
        differs = difference(ours, json.loads(path.read_text("utf-8")))
    except (ValueError, AttributeError, RecursionError):
        raise InputError(f"{str(path)!r} is damaged: choose another --out") from None
    if differs:
        raise InputError(
            f"{str(out)!r} holds embeddings of other trunks ({'; '.join(differs)}): choose another "
            "--out, or delete it"
        )


def _list_shards(jobs: Sequence[_Job], out: Path) -> None:
    """Write down which shards each split is to have: these, and those of before."""
    with locked(out / ".lock", wait=True):
        for folder in {job.folder for job in jobs}:
            path = folder / SHARDS
            remove_leftovers(folder, SHARDS)
            known = shard_names(path)
            names = sorted({*known, *(job.name for job in jobs if job.folder == folder)})
            if names != known:
                write_text(path, "".join(f"{name}\n" for name in names))


def _encode(job: _Job, trunks: _Trunks, batch: int, data: DataConfig, progress: Progress) -> None:
    if job.done():
        return
    for path in (*job.files.values(), job.origin):
        remove_leftovers(path.parent, path.name)
    with collecting(data, progress) as problems:
        found = shard_items(job.shard, "", problems)
        total = len(found) + len(problems.found)
        items, features = _features(found, trunks, batch, problems)
        problems.settle(total, f"pairs of the shard {str(job.shard)!r}")
    if not items:
        raise InputError(f"the shard {str(job.shard)!r} is empty: leave it out")
    images = np.concatenate(features)
    texts = trunks.text.embed([text for item in items for text in item.captions], Silent())
    owner = np.repeat(np.arange(len(items)), [len(item.captions) for item in items])
    write_text(job.origin, block_digest(job.shard))
    for side, array in (("images", images), ("texts", texts), ("owner", owner)):
        write_array(job.files[side], array)
    lines = [
        json.dumps({"key": item.key.removeprefix("|"), "captions": item.captions}) for item in items
    ]
    write_text(job.files["captions"], "".join(f"{line}\n" for line in lines))


def _features(
    items: Sequence[Item], trunks: _Trunks, batch: int, problems: Problems
) -> tuple[list[Item], list[np.ndarray]]:
    """The items that can be decoded, and their features. Shape of each: (batch or less, f)"""
    kept: list[Item] = []
    features = []
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(items), batch):
            part = items[start : start + batch]
            pixels = []
            found = pool.map(partial(pixels_or_error, size=trunks.size), part)
            for item, image in zip(part, found, strict=True):
                if isinstance(image, BadRowError):
                    problems.add(image)
                else:
                    kept.append(item)
                    pixels.append(image)
            if pixels and (problems.skip or not problems.found):
                features.append(trunks.image(torch.from_numpy(np.stack(pixels))).numpy())
    return kept, features
