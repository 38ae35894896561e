"""What a run says about data that is too small for its set, or for measuring it."""

from __future__ import annotations

from lors.setting import Setting
from lors.setting.resolve import small_budget

__all__ = ["say_what_is_small"]

SMALL_TEST = 20
"""Images below which recall at 10 is half chance, or more."""


def say_what_is_small(setting: Setting) -> None:
    """Say where the data is too small for the set, or for measuring it."""
    budget = setting.config.distill.budget
    train, test = (len(setting.pairs.splits[name]) for name in ("train", "test"))
    better = small_budget(train)
    if 2 * budget > train and better < budget:
        setting.progress.say(
            f"The set may take the storage of {budget} pairs, more than half of the {train:,} "
            f"training pairs; try distill.budget={better}."
        )
    if test < SMALL_TEST:
        setting.progress.say(
            f"The test split has {test} images, too few to tell good sets from bad ones: compare "
            "recalls with chance, or add data."
        )
