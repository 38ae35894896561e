"""Items decoded into the array cache: all of them, or all that can be decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.decoded import UnreadableError, cached_images
from lors.data.pairs import Decoded, Item, Split
from lors.data.problems import Problems, collecting
from lors.files.artifacts import home, write_text
from lors.files.cache import cache_errors, fingerprint
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["decoded_items", "remember_unreadable"]


def decoded_items(
    splits: Mapping[str, list[Item]], image_size: int, config: DataConfig, progress: Progress
) -> Decoded:
    """The items of each split with their images in the cache.

    Args:
        splits: what to decode.
        image_size: side of the images in pixels.
        config: says whether images that cannot be decoded are left out.
        progress: reports long-running work, and what was left out.

    Raises:
        BadDataError: images that cannot be decoded, after all were tried.
    """
    decoded = {}
    with collecting(config, progress) as problems:
        for name, items in splits.items():
            kept, images = _decoded(items, image_size, problems, progress)
            if not kept:
                raise InputError(f"no image of the split {name!r} can be decoded")
            if images is not None:
                decoded[name] = _split(kept, images, image_size)
        problems.settle(sum(map(len, splits.values())), "images")
    marks = [f"{name}|{split.fingerprint}" for name, split in decoded.items()]
    return Decoded(fingerprint(*marks), decoded)


def _decoded(
    items: Sequence[Item], size: int, problems: Problems, progress: Progress
) -> tuple[Sequence[Item], np.ndarray | None]:
    """The items that can be decoded, and their images; None where all must be, and some cannot."""
    bad = _still_unreadable(items) if problems.skip else {}
    kept, places = _without(items, bad)
    images: np.ndarray | None
    try:
        images = cached_images(kept, size, progress)
    except UnreadableError as error:
        bad |= {places[place]: problem for place, problem in error.found.items()}
        remember_unreadable(items, bad)
        kept, _ = _without(items, bad)
        images = cached_images(kept, size, progress) if problems.skip and kept else None
    for place in sorted(bad):
        problems.add(bad[place])
    return kept, images


def _without(
    items: Sequence[Item], bad: Mapping[int, object]
) -> tuple[Sequence[Item], Sequence[int]]:
    """The items that are not bad, and their places."""
    if not bad:
        return items, range(len(items))
    places = [place for place in range(len(items)) if place not in bad]
    return [items[place] for place in places], places


def _list_of_unreadable(items: Sequence[Item]) -> Path:
    mark = fingerprint("unreadable", *(item.key for item in items))
    return home() / "images" / f"{mark}.json"


def remember_unreadable(items: Sequence[Item], bad: Mapping[int, BadRowError]) -> None:
    """Write down which images cannot be decoded, so that who leaves them out finds them at once."""
    path = _list_of_unreadable(items)
    with cache_errors(path):
        write_text(path, json.dumps(sorted(bad)))


def _still_unreadable(items: Sequence[Item]) -> dict[int, BadRowError]:
    """Of the images that could not be decoded before, those that still cannot, by place."""
    try:
        places = json.loads(_list_of_unreadable(items).read_bytes())
        suspects = [place for place in places if 0 <= place < len(items)]
    except (OSError, ValueError, TypeError, RecursionError):  # none, or damaged: try them all
        return {}
    bad = {}
    for place in suspects:
        try:
            items[place].load()
        except BadRowError as error:
            bad[place] = error
    return bad


def _split(items: Sequence[Item], images: np.ndarray, image_size: int) -> Split:
    content = (
        part for item in items for part in (item.key, str(len(item.captions)), *item.captions)
    )
    return Split(
        images=images,
        captions=[caption for item in items for caption in item.captions],
        owner=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
        fingerprint=fingerprint(str(image_size), *content),
    )
