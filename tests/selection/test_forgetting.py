from __future__ import annotations

import numpy as np
import pytest

from lors.selection.forgetting import forgetting, forgetting_events
from lors.system.errors import InputError


def epochs(*pairs: str) -> np.ndarray:
    """Each pair's history, as in "+-+": learned, not, learned. Shape: (T, M)"""
    return np.array([[mark == "+" for mark in pair] for pair in pairs]).T


@pytest.mark.parametrize(
    ("history", "events"),
    [
        ("++++", 0),  # learned at once and for good
        ("--++", 0),  # learned late
        ("+++-", 1),  # lost at the end
        ("+-+-", 2),  # the most that four epochs allow
        ("-+--", 1),  # lost once, however long it stays lost
        ("----", 4),  # never learned: above all
        ("+", 0),
        ("-", 1),
    ],
)
def test_an_event_is_a_pair_learned_and_then_lost(history: str, events: int) -> None:
    assert forgetting_events(epochs(history)).tolist() == [events]


def test_a_pair_never_learned_is_above_all_that_were() -> None:
    every = [f"{history:07b}".replace("1", "+").replace("0", "-") for history in range(128)]
    events = forgetting_events(epochs(*every))
    assert (events[0] > events[1:]).all()


def test_events_are_summed_over_runs_and_the_most_come_first() -> None:
    first = epochs("+++", "+-+", "-+-", "---")
    second = epochs("+++", "+-+", "+++", "++-")
    picks, scores = forgetting([first, second], 3, np.random.default_rng(0))
    assert picks.tolist() == [3, 1, 2]
    assert scores.tolist() == [4, 2, 1]


def test_runs_may_differ_in_length() -> None:
    picks, _ = forgetting([epochs("+", "+"), epochs("+++", "+-+")], 1, np.random.default_rng(0))
    assert picks.tolist() == [1]


def test_chance_breaks_ties_and_only_ties() -> None:
    learned = epochs("+-", "++", "++", "++", "++", "+-")
    draws = [forgetting([learned], 4, np.random.default_rng(seed))[0] for seed in range(50)]
    assert all(set(picks[:2]) == {0, 5} for picks in draws)
    assert {i for picks in draws for i in picks[2:]} == {1, 2, 3, 4}
    assert {int(picks[0]) for picks in draws} == {0, 5}
    again = forgetting([learned], 4, np.random.default_rng(7))[0]
    assert again.tolist() == draws[7].tolist()


def test_what_cannot_be_counted_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="at least one training run"):
        forgetting([], 1, rng)
    with pytest.raises(InputError, match="saw 1 and 2 pairs"):
        forgetting([epochs("+-"), epochs("+-", "++")], 1, rng)
    with pytest.raises(InputError, match="cannot choose 3 of 2 pairs"):
        forgetting([epochs("+-", "++")], 3, rng)
    with pytest.raises(InputError, match="matrix of booleans"):
        forgetting_events(np.zeros((3, 2)))
    with pytest.raises(InputError, match="at least one, not bool of shape"):
        forgetting_events(np.zeros((0, 2), bool))
