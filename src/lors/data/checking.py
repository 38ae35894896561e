"""The check of a whole dataset: every problem in it, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.dataset import SOURCES
from lors.data.decoding import remember_unreadable
from lors.data.pairs import Decoded, Item
from lors.data.problems import BadDataError, report
from lors.data.splitting import split_items
from lors.data.telling import Repeated
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.threads import threaded

__all__ = ["Checked", "check_pairs"]


@dataclass
class Checked:
    """What a check found.

    Args:
        facts: about the data that can be used, in words.
        problems: all of them.
        rows: how many rows, images or embeddings were looked at.
        fatal: what keeps the rest from being used.
    """

    facts: dict[str, str] = field(default_factory=dict)
    problems: list[BadRowError] = field(default_factory=list)
    rows: int = 0
    fatal: InputError | None = None

    def error(self) -> InputError | None:
        """All that is wrong, as a run would say it; None if nothing is."""
        if not self.problems:
            return self.fatal
        error = report(self.problems, self.rows)
        if self.fatal is None:
            return error
        return BadDataError(f"{str(self.fatal).partition(chr(10))[0]}; also, {error}")


def check_pairs(config: DataConfig, progress: Progress | None = None) -> Checked:
    """Read a dataset as a run would, and decode every image of it.

    Args:
        config: the data; ``skip_bad`` makes no difference.
        progress: reports long-running work, and what is odd.
    """
    progress, checked = progress or Silent(), Checked()
    try:
        found = _listed(config, checked, progress)
        if isinstance(found, Decoded):
            checked.facts = _facts_of_embeddings(found)
            return checked
        splits = split_items(found, config)
        kept, sizes = _decoded(splits, checked, progress)
        if not all(kept.values()):
            raise InputError("a split has no image that can be decoded")
        checked.facts = {**_facts(kept), **_sizes(sizes), **_repeated(found, kept)}
    except InputError as error:
        if not checked.problems:
            raise
        checked.fatal = error
    return checked


def _listed(
    config: DataConfig, checked: Checked, progress: Progress
) -> Mapping[str, Sequence[Item]] | Decoded:
    """What a source lists that can be used; its problems are kept."""
    source = SOURCES.choose(config.source)
    try:
        found = source.read(config.model_copy(update={"skip_bad": False}), progress)
    except BadDataError as error:
        checked.problems += error.problems
        checked.rows = error.total
        found = source.read(config.model_copy(update={"skip_bad": True}), Silent())
    return found


def _decoded(
    splits: Mapping[str, Sequence[Item]], checked: Checked, progress: Progress
) -> tuple[dict[str, list[Item]], np.ndarray]:
    """Decode every image, and note problems; the others, and their sizes. Shape: (M, 2)"""
    sizes = []
    kept: dict[str, list[Item]] = {name: [] for name in splits}
    total = sum(map(len, splits.values()))
    every = (item for items in splits.values() for item in items)
    results = iter(progress.track(threaded(_size, every), "decode images", total))
    for name, items in splits.items():
        bad = {}
        for place, item in enumerate(items):
            result = next(results)
            if isinstance(result, BadRowError):
                bad[place] = result
            else:
                kept[name].append(item)
                sizes.append(result)
        checked.problems += bad.values()
        if bad:
            remember_unreadable(items, bad)
    next(results, None)  # the last one is done, too
    checked.rows = max(checked.rows, total)
    return kept, np.array(sizes).reshape(-1, 2)


def _size(item: Item) -> tuple[int, int] | BadRowError:
    try:
        return item.load().size
    except BadRowError as error:
        return error.with_traceback(None)


def _facts(splits: Mapping[str, Sequence[Item]]) -> dict[str, str]:
    facts = {}
    for name, items in splits.items():
        captions = [len(item.captions) for item in items]
        facts[name] = f"{len(items):,} images, {sum(captions):,} captions"
    counts = [len(item.captions) for items in splits.values() for item in items]
    return facts | {"captions per image": _range(counts)}


def _sizes(sizes: np.ndarray) -> dict[str, str]:
    if not len(sizes):
        return {}
    pixels = sizes.prod(1)
    least, most = (sizes[row] for row in (pixels.argmin(), pixels.argmax()))
    middle = np.median(sizes, 0).astype(int)
    words = " x ".join
    return {
        "image sizes": f"from {words(map(str, least))} to {words(map(str, most))} pixels, median "
        f"{words(map(str, middle))}"
    }


def _repeated(
    found: Mapping[str, Sequence[Item]], splits: Mapping[str, Sequence[Item]]
) -> dict[str, str]:
    repeated = Repeated.of(found, splits)
    facts = {
        "repeated captions": f"{repeated.captions:,}",
        "copies of images": f"{repeated.images:,}",
    }
    shared = {f"{name} also in train": f"{count:,}" for name, count in repeated.shared.items()}
    return facts | shared


def _facts_of_embeddings(found: Decoded) -> dict[str, str]:
    facts, counts = {}, []
    for name, split in found.splits.items():
        facts[name] = f"{len(split):,} images, {len(split.owner):,} texts"
        counts += np.bincount(split.owner, minlength=len(split)).tolist()
    train = found.splits["train"]
    widths = f"images {train.images.shape[1]}"
    if train.texts is not None:
        widths += f", texts {train.texts.shape[1]}"
    return {**facts, "texts per image": _range(counts), "numbers per row": widths}


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    if least == most:
        return f"{least}"
    return f"{least} to {most}, mean {sum(counts) / len(counts):.1f}"
