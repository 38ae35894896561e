from __future__ import annotations

import numpy as np
import pytest

from lors.selection.random import at_random
from lors.system.errors import InputError


def test_no_pair_is_chosen_twice_and_the_seed_decides() -> None:
    chosen, again, other = (at_random(50, 50, np.random.default_rng(s))[0] for s in (0, 0, 1))
    assert sorted(chosen) == list(range(50))
    assert np.array_equal(chosen, again)
    assert not np.array_equal(chosen, other)


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="1 to 3"):
        at_random(3, 4, np.random.default_rng(0))
