"""What a network trained on the set finds on the test split: queries with their answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lors.encoders import DualEncoder
from lors.evaluation.rows import evaluation_network
from lors.runs.opened import Run
from lors.setting import Setting
from lors.show.report import blocks
from lors.show.report.album import CRISP, Album
from lors.show.report.blocks import Block
from lors.system.seeding import derive_seed

__all__ = ["retrieval_section"]

DRAWN = 500
"""Queries that are drawn of each direction, to choose those that are shown from."""
EACH = 3
"""Hits, and misses, that are shown of each direction."""
TOP = 5
SECONDS = 60.0
"""A network that would train for longer is trained only for a thorough report."""
TITLE = "What it finds"


class _TooLongError(Exception):
    """Training the network would take so many seconds."""


@dataclass(frozen=True)
class Query:
    """A query with its answers.

    Args:
        number: of the query in its split.
        answers: the numbers of the best answers, best first, with their cosines.
        right: the right answer, or the best of several.
        place: of that answer among all; ties never count in favour.
    """

    number: int
    answers: list[tuple[int, float]]
    right: int
    place: int

    @property
    def hit(self) -> bool:
        """Whether a right answer is among those shown."""
        return self.place <= TOP


def retrieval_section(run: Run, setting: Setting, thorough: bool) -> Block:
    """Queries of the test split, right and wrong, answered by a network trained on the set.

    Args:
        run: whose set.
        setting: the real pairs.
        thorough: whether to train the network however long it takes.
    """
    try:
        network = evaluation_network(setting, run.distilled, _guard(setting, thorough))
    except _TooLongError as error:
        (seconds,) = error.args
        return blocks.section(
            TITLE,
            blocks.text(
                "Not shown: training a network on the set would take about "
                f"{seconds / 60:.0f} minutes here. 'lors report RUN --thorough' does it."
            ),
        )
    return blocks.section(TITLE, *_answered(run, setting, network))


def _guard(setting: Setting, thorough: bool) -> Callable[[int], None]:
    """Stops a training that would take too long, as soon as that is clear."""
    began, epochs = time.monotonic(), setting.config.evaluate.epochs

    def check(epoch: int) -> None:
        passed = time.monotonic() - began
        if not thorough and passed > SECONDS / 10 and passed * epochs / epoch > SECONDS:
            raise _TooLongError(passed * epochs / epoch)

    return check


def _answered(run: Run, setting: Setting, network: DualEncoder) -> list[Block]:
    split, album = setting.real["test"], Album(2_000_000)
    images, texts = (side.cpu() for side in split.embed(network))
    owner = torch.from_numpy(split.owner)
    seed = run.config.seed
    found = {
        "image": _queries(texts, images, lambda caption: owner[caption, None], seed),
        "text": _queries(images, texts, lambda image: (owner == image).nonzero()[:, 0], seed),
    }
    shown = {kind: _hits_and_misses(queries) for kind, queries in found.items()}
    names = {"image": "captions", "text": "images"}
    rates = " and ".join(
        f"{sum(q.hit for q in queries):,} of {len(queries):,} drawn {names[kind]}"
        for kind, queries in found.items()
    )
    looks = _Looks(setting, album)
    entries = [looks.entry(kind, query) for kind, chosen in shown.items() for query in chosen]
    return [
        blocks.text(
            "The first of the networks that the evaluation trains on this set, searching the "
            f"test split of {len(images):,} images and {len(texts):,} captions. The right answer "
            f"is among the first {TOP} for {rates}.",
            f"Shown are the first {EACH} hits and the first {EACH} misses of each draw, more of "
            "the one where the other is rarer. The right answers carry a tick, and after a miss "
            "the right one stands at the end.",
        ),
        {
            "kind": "retrievals",
            "entries": entries,
            "captions": album.captions(),
            "pictures": album.pictures(),
            "crisp": (run.config.encoder.image_size or 0) <= CRISP,
        },
    ]


def _queries(
    queries: Tensor, answers: Tensor, right: Callable[[int], Tensor], seed: int
) -> list[Query]:
    """Drawn queries with their answers.

    Args:
        queries: normalised embeddings. Shape: (Q, d)
        answers: Shape: (A, d)
        right: gives the right answers of a query, of which there is at least one.
        seed: draws the queries.
    """
    rng = np.random.default_rng(derive_seed(seed, "retrievals"))
    drawn = rng.permutation(len(queries))[:DRAWN]
    found = []
    for number, scores in zip(drawn.tolist(), queries[drawn] @ answers.T, strict=True):
        own = right(number)
        wrong = torch.ones(len(scores), dtype=torch.bool)
        wrong[own] = False
        best = int(own[scores[own].argmax()])
        place = 1 + int((wrong & ~(scores < scores[best])).sum())
        order = np.lexsort((~wrong.numpy(), -scores.numpy()))[:TOP].tolist()
        listed = [(int(i), float(scores[i].nan_to_num())) for i in order]
        found.append(Query(number, listed, best, place))
    return found


def _hits_and_misses(queries: list[Query]) -> list[Query]:
    """The first of each, as many of both where there are; hits first."""
    hits, misses = ([q for q in queries if q.hit is hit] for hit in (True, False))
    few_hits, few_misses = min(EACH, len(hits)), min(EACH, len(misses))
    return hits[: 2 * EACH - few_misses] + misses[: 2 * EACH - few_hits]


class _Looks:
    """Images and captions of the test split as the page shows them."""

    def __init__(self, setting: Setting, album: Album) -> None:
        self.split, self.album = setting.pairs.splits["test"], album

    def entry(self, kind: str, query: Query) -> dict[str, Any]:
        """A query for images, or for texts, with its answers."""
        answer, asked = (self.image, self.text) if kind == "image" else (self.text, self.image)
        right = {query.right} if kind == "image" else self._captions_of(query.number)
        answers = [
            {**answer(number), "cosine": round(cosine, 3), "right": number in right}
            for number, cosine in query.answers
        ]
        if not query.hit:
            answers.append({**answer(query.right), "cosine": None, "right": True})
        return {
            "kind": kind,
            "query": asked(query.number),
            "hit": query.hit,
            "place": query.place,
            "answers": answers,
        }

    def _captions_of(self, image: int) -> set[int]:
        return set(np.flatnonzero(self.split.owner == image).tolist())

    def image(self, number: int) -> dict[str, Any]:
        images, words = self.split.images, self.split.captions
        seen = images.dtype == np.uint8
        first = int(np.searchsorted(self.split.owner, number))
        return {
            "name": f"image {number}",
            "picture": self.album.picture(number, images[number]) if seen else None,
            "caption": self.album.caption(words[first]) if words else None,
        }

    def text(self, number: int) -> dict[str, Any]:
        words = self.split.captions
        caption = self.album.caption(words[number]) if words else None
        return {"name": f"text {number}", "caption": caption}
