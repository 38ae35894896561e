from __future__ import annotations

import time

import pytest

from lors.analysis.efficiency import efficiency, paired_difference, take_turns
from lors.config import load_config
from lors.errors import InputError


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


def test_a_learned_similarity_against_the_identity() -> None:
    plain, learned = efficiency(load_config("tiny"), rounds=2)
    assert (plain["similarity"], learned["similarity"]) == ("identity", "lowrank")
    assert (plain["pairs"], learned["pairs"]) == (7, 7)
    assert plain["memory_mb"] == pytest.approx(learned["memory_mb"], rel=0.2)
    assert learned["more_seconds"] == pytest.approx(learned["seconds"] - plain["seconds"])


def test_mistakes_are_sentences() -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        efficiency(load_config("tiny", ["similarity.kind=identity"]))
    with pytest.raises(InputError, match="time more"):
        take_turns({}, 1)
