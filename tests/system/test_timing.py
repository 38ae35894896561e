from __future__ import annotations

import time

import pytest

from lors.system.errors import InputError
from lors.system.timing import paired_difference, take_turns


def test_turns_alternate_and_the_first_is_not_counted() -> None:
    calls: list[str] = []
    steps = {name: (lambda name=name: calls.append(name)) for name in "ab"}
    seconds = take_turns(steps, 3)
    assert "".join(calls) == "ab" + "abbaab"
    assert [len(times) for times in seconds.values()] == [3, 3]


def test_a_slower_step_takes_longer() -> None:
    seconds = take_turns({"slow": lambda: time.sleep(0.01), "fast": lambda: None}, 3)
    difference, error = paired_difference(seconds["slow"], seconds["fast"])
    assert difference > 0.009
    assert error < difference


def test_the_difference_is_paired() -> None:
    """What slows both, round by round, cancels."""
    difference, error = paired_difference([1.5, 101.5, 7.5], [1.0, 101.0, 7.0])
    assert (difference, error) == (0.5, 0)


def test_one_round_is_refused() -> None:
    with pytest.raises(InputError, match="time more"):
        take_turns({}, 1)
