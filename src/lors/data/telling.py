"""What was read, in words: counts that show at once when a file was not read as it was meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lors.data.pairs import Item
from lors.system.progress import Progress

__all__ = ["Repeated", "tell_of_items"]


@dataclass(frozen=True)
class Repeated:
    """What stands more than once.

    Args:
        captions: that stand more than once with the same image.
        images: copies of others.
        shared: images of val and of test that are also in train.
    """

    captions: int
    images: int
    shared: Mapping[str, int]

    @classmethod
    def of(
        cls, found: Mapping[str, Sequence[Item]], splits: Mapping[str, Sequence[Item]]
    ) -> Repeated:
        """Count in all that a source holds, and in the splits that are used of it."""
        items = list(chain.from_iterable(found.values()))
        keys = Counter(item.key for item in items)
        train = {item.key for item in splits["train"]}
        return cls(
            captions=sum(len(item.captions) - len(set(item.captions)) for item in items),
            images=sum(count - 1 for count in keys.values()),
            shared={
                name: sum(item.key in train for item in splits[name]) for name in ("val", "test")
            },
        )


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
    repeated = Repeated.of(found, splits)
    if repeated.captions:
        progress.say(
            f"Captions that stand more than once with the same image: {repeated.captions:,}."
        )
    if repeated.images:
        progress.say(f"Images that are copies of others: {repeated.images:,}.")
    for name, shared in repeated.shared.items():
        if shared:
            progress.say(
                f"Warning: images of {name} that are also in train: {shared:,}. Recall on {name} "
                "looks better than it is on new images."
            )
