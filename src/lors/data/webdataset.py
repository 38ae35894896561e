"""WebDataset shards: tar files in which ``key.jpg`` lies next to ``key.txt`` or ``key.json``.

Each split is a pattern of shards below the root, such as ``train-{000..003}.tar`` or
``train-*.tar``. A shard is indexed once, by walking its headers; an image is later read from its
place in the shard, and nothing is unpacked. The layout is described at
https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import caption_texts, root_folder
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.data.patterns import matching_files
from lors.data.problems import Problems, collecting
from lors.data.source import Source
from lors.files.digests import file_digests
from lors.files.tar import TarError, tar_members
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["SOURCE", "find_shards", "read_webdataset", "shard_items"]

IMAGES = ("jpg", "jpeg", "png", "webp")
CAPTIONS = ("txt", "json")
NAME = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)", re.DOTALL)
"""A member's name: the key ends at the first dot of the file's name, the rest says the kind."""

MEMBER_BYTES = {**dict.fromkeys(IMAGES, 2**28), **dict.fromkeys(CAPTIONS, 2**20)}
"""The largest members that are read: beyond any photo and any caption."""

Place = tuple[int, int]
"""Where a member's bytes are in its shard: offset and size."""


def read_webdataset(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """The splits whose shards are named in ``config.annotations``."""
    shards = find_shards(config)
    every = list(dict.fromkeys(shard for paths in shards.values() for shard in paths))
    digests = dict(zip(every, file_digests(root_folder(config), every, progress), strict=True))
    with collecting(config, progress) as problems:
        items = {
            split: [i for shard in paths for i in shard_items(shard, digests[shard], problems)]
            for split, paths in shards.items()
        }
        good = sum(map(len, items.values()))
        problems.settle(good + len(problems.found), "pairs of the shards")
    return items


def find_shards(config: DataConfig) -> dict[str, list[Path]]:
    """The shards of each split.

    Raises:
        InputError: there are none for train, or a pattern matches no file.
    """
    root = root_folder(config)
    if "train" not in config.annotations:
        raise InputError(
            f"data source {config.source!r} needs data.annotations.train, a pattern of shards "
            "such as train-{000..003}.tar"
        )
    return {
        split: matching_files(root, pattern, f"data.annotations.{split}")
        for split, pattern in config.annotations.items()
    }


def shard_items(shard: Path, digest: str, problems: Problems) -> list[Item]:
    """What one shard holds, in its order.

    Args:
        shard: a tar file.
        digest: of its content; an item's key is this, a bar, and the key in the shard.
        problems: if it is damaged, or a key lacks an image or a caption.
    """
    items: list[Item] = []
    index: dict[str, dict[str, Place]] = {}
    with problems:
        index = _index(shard)
    for key, members in index.items():
        where = f"{key!r} in the shard {str(shard)!r}"
        image, captions = None, tuple[str, ...]()
        with problems:
            image = _first(members, IMAGES, where, "image")
        with problems:
            captions = _captions(shard, members, where)
        if image is not None and captions:
            load = partial(_load, shard, members[image], where)
            items.append(Item(f"{digest}|{key}", captions, load))
    return items


def _index(shard: Path) -> dict[str, dict[str, Place]]:
    """The places of the members of each key, by kind; links, folders and devices do not count."""
    index: dict[str, dict[str, Place]] = {}
    try:
        for member in tar_members(shard):
            name = NAME.fullmatch(member.name)
            if name:
                key, kind = name[1], name[2].lower()
                if kind in index.setdefault(key, {}):
                    raise BadRowError(
                        f"the shard {str(shard)!r} holds '{key}.{kind}' twice", "damaged shards"
                    )
                index[key][kind] = (member.offset, member.size)
    except (TarError, OSError) as error:
        raise BadRowError(
            f"cannot read the shard {str(shard)!r}: {error}; it must be a complete tar file, "
            "not compressed",
            "damaged shards",
        ) from None
    return index


def _first(members: Mapping[str, Place], kinds: tuple[str, ...], where: str, what: str) -> str:
    for kind in kinds:
        if kind in members:
            if members[kind][1] > MEMBER_BYTES[kind]:
                size = f"{members[kind][1]:,} bytes"
                raise BadRowError(f"{where}: its .{kind} file has {size}", "files too large")
            return kind
    raise BadRowError(
        f"{where} has no {what}: add a .{', .'.join(kinds)} file or remove the key",
        f"pairs without {what}",
    )


def _captions(shard: Path, members: Mapping[str, Place], where: str) -> tuple[str, ...]:
    kind = _first(members, CAPTIONS, where, "caption")
    data = _read(shard, members[kind])
    try:
        text = data.decode("utf-8-sig")
        value: Any = json.loads(text) if kind == "json" else None
    except (ValueError, RecursionError) as error:
        raise BadRowError(
            f"{where}: cannot read its .{kind} file: {error}", "captions that are no text"
        ) from None
    if kind == "txt":
        return caption_texts([line for line in text.splitlines() if line.strip()], where)
    if not isinstance(value, dict) or "caption" not in value:
        raise BadRowError(
            f'{where}: its .json file must hold an object with "caption"', "missing captions"
        )
    return caption_texts(value["caption"], where)


def _load(shard: Path, place: Place, where: str) -> Image.Image:
    return decode_image(_read(shard, place), where)


def _read(shard: Path, place: Place) -> bytes:
    offset, size = place
    try:
        with shard.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise InputError(f"cannot read the shard {str(shard)!r}: {error}") from None


SOURCE = Source(read_webdataset, shards=find_shards)
