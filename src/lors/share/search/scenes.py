"""Answers to all queries in the words of the built-in scenes, for a page without a server.

A query names one shape, or none, with its size, texture and colour, and a background.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from PIL import Image

from lors.data.pairs import Item
from lors.data.scenes import BACKGROUNDS, COLOURS, SCALES, SHAPES, TEXTURES, Scene, make_scene
from lors.share.search.finder import Finder

__all__ = ["COMPLETIONS", "picture_uri", "prepared_answers", "scene_query"]

ANY_SHAPE = "shape"
Slot = list[tuple[str, str | None]]


def _slot(words: Mapping[str, tuple[str, ...]]) -> Slot:
    return [(word, meaning) for meaning, synonyms in words.items() for word in synonyms]


SLOTS: tuple[Slot, ...] = (
    _slot(SCALES),
    _slot(TEXTURES),
    [(colour, colour) for colour in COLOURS],
    [*_slot(SHAPES), (ANY_SHAPE, None)],
    [(background, background) for background in BACKGROUNDS],
)
"""The words of a query and what each means, in the order of an English sentence."""

IGNORED = (
    *("a", "an", "the", "on", "in", "of", "with", "and", "there", "is", "picture", "background"),
    *("against", "can", "be", "seen", "some", "show", "me", "find"),
)
COMPLETIONS = tuple(f"a {colour} {shape}" for shape in SHAPES for colour in COLOURS)


def scene_query(words: tuple[str, ...]) -> str:
    """One word of each slot, or an empty one, as a caption says it.

    >>> scene_query(("large", "", "red", "circle", "pink"))
    'a large red circle on a pink background'
    >>> scene_query(("", "", "orange", "", ""))
    'an orange shape'
    """
    *about, shape, background = words
    named = [word for word in about if word]
    if named or shape:
        named.append(shape or ANY_SHAPE)
        named.insert(0, "an" if named[0][0] in "aeiou" else "a")
    if background:
        named.append(f"on a {background} background")
    return " ".join(named)


def prepared_answers(finder: Finder, seed: int, count: int = 8) -> dict[str, Any]:
    """What ``SearchPage.local`` takes: the answers of each model, and the pictures.

    Args:
        finder: of built-in scenes, at most 1,296 of them.
        seed: of these scenes: ``data.seed``.
        count: how many pictures an answer has.
    """
    queries = [scene_query(words) or "a" for words in _all_words()]
    answers = []
    for name, model in finder.models.items():
        places = (model.embed_texts(queries) @ finder.embeddings(name).T).topk(count).indices
        answers.append("".join(map(_base36, places.flatten().tolist())))
    scenes = [_scene(photo, seed) for photo in finder.photos]
    return {
        "slots": SLOTS,
        "ignored": IGNORED,
        "example": COMPLETIONS[0],
        "count": count,
        "answers": answers,
        "captions": [photo.captions[0] for photo in finder.photos],
        "pictures": [picture_uri(photo.load()) for photo in finder.photos],
        "scenes": [
            {
                "background": scene.background,
                "objects": [(o.scale, o.texture, o.colour, o.shape) for o in scene.objects],
            }
            for scene in scenes
        ],
    }


def picture_uri(image: Image.Image, lossless: bool = False) -> str:
    """A picture inside of a page."""
    file = io.BytesIO()
    image.save(file, "WEBP", quality=80, lossless=lossless)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def _all_words() -> Iterator[tuple[str, ...]]:
    """The words of all queries, the last slot changing fastest."""
    return product(*(["", *(word for word, _ in slot)] for slot in SLOTS))


def _scene(photo: Item, seed: int) -> Scene:
    """What is drawn: a scene is a function of its seed and its number, which ends its key."""
    return make_scene(seed, int(photo.key.rsplit("|", 1)[1]))


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[number // 36] + digits[number % 36]
