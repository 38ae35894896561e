"""The pairs of every split, before they are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lors.config import DataConfig, names
from lors.data.in_memory import Given, whole
from lors.data.pairs import Decoded, Item
from lors.data.problems import Skipped, skip_rows
from lors.data.source import Source
from lors.data.splitting import split_items
from lors.data.telling import tell_of_items
from lors.system.progress import Progress
from lors.system.registry import Registry

__all__ = ["SOURCES", "listed"]

SOURCES: Registry[Source] = names.SOURCES


def listed(
    given: Mapping[str, Given] | None,
    left_out: Iterable[Skipped],
    config: DataConfig,
    progress: Progress,
) -> dict[str, list[Item]] | Decoded:
    """The items of each split, in memory or from files; embeddings are ready as they are.

    Args:
        given: pairs in memory; None: those that the configuration names.
        left_out: bad rows of what is in memory.
        config: the section ``data`` of a whole configuration.
        progress: reports long-running work, and what was read.
    """
    source = SOURCES.choose(config.source)
    for skipped in left_out:
        skip_rows(skipped, progress)
    found = source.read(config, progress) if given is None else whole(given, config)
    if isinstance(found, Decoded):
        return found
    splits = split_items(found, config)
    if not source.built_in:
        tell_of_items(found, splits, progress)
    return splits
