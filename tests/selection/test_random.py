from __future__ import annotations

import numpy as np
import pytest

from lors.selection import Pool
from lors.selection.random import at_random
from lors.system.errors import InputError


class Counted(Pool):
    """So many pairs of which nothing is known."""

    def __init__(self, size: int, seed: int) -> None:
        self.rng, self.captions = np.random.default_rng(seed), np.arange(size)


def test_no_pair_is_chosen_twice_and_the_seed_decides() -> None:
    chosen, again, other = (at_random(Counted(50, seed), 50)[0] for seed in (0, 0, 1))
    assert sorted(chosen) == list(range(50))
    assert np.array_equal(chosen, again)
    assert not np.array_equal(chosen, other)


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="1 to 3"):
        at_random(Counted(3, 0), 4)
