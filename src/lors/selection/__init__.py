"""Selection: choosing real pairs instead of learning synthetic ones."""

from collections.abc import Callable

import numpy as np

from lors.config import names
from lors.selection.candidates import Candidates
from lors.selection.pool import Choice, Pool
from lors.setting import Setting
from lors.system.registry import Registry

__all__ = ["SELECTIONS", "Candidates", "Choice", "Pool", "select"]

SELECTIONS: Registry[Callable[[Pool, int], Choice]] = names.SELECTIONS


def select(setting: Setting, kind: str, count: int, *keys: int | str) -> tuple[Choice, np.ndarray]:
    """Choose real pairs, each an image with a drawn one of its captions.

    Args:
        setting: whose training split to choose from.
        kind: a name in ``SELECTIONS``.
        count: how many.
        keys: seed everything random.

    Returns:
        The images chosen with their scores, and the caption of each. Shape: (count,)
    """
    pool = Pool(setting, *keys)
    chosen, scores = SELECTIONS.choose(kind)(pool, count)
    return (chosen, scores), pool.captions[chosen]
