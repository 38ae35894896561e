"""What was read, in words: counts that show at once when a file was not read as it was meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from lors.data.pairs import Item
from lors.system.progress import Progress

__all__ = ["tell_of_items"]


def tell_of_items(
    found: Mapping[str, Sequence[Item]], splits: Mapping[str, Sequence[Item]], progress: Progress
) -> None:
    """Say how many captions and images were read, and which stand there more than once.

    Args:
        found: all that the source holds.
        splits: what is used of it.
        progress: says it.
    """
    items = list(chain.from_iterable(found.values()))
    captions = sum(len(item.captions) for item in items)
    used = ", ".join(f"{len(split):,} {name}" for name, split in splits.items())
    progress.say(f"Read {captions:,} captions of {len(items):,} images: {used}.")
    twice = sum(len(item.captions) - len(set(item.captions)) for item in items)
    if twice:
        progress.say(f"Captions that stand more than once with the same image: {twice:,}.")
    keys = Counter(item.key for item in items)
    copies = sum(count - 1 for count in keys.values())
    if copies:
        progress.say(f"Images that are copies of others: {copies:,}.")
    train = {item.key for item in splits["train"]}
    for name in ("val", "test"):
        shared = sum(item.key in train for item in splits[name])
        if shared:
            progress.say(
                f"Warning: images of {name} that are also in train: {shared:,}. Recall on {name} "
                "looks better than it is on new images."
            )
