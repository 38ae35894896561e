from __future__ import annotations

from types import SimpleNamespace

import pytest

from lors.system.errors import InputError
from lors.system.timing import paired_difference, take_turns


def test_turns_alternate_and_the_first_is_not_counted() -> None:
    calls: list[str] = []
    steps = {name: (lambda name=name: calls.append(name)) for name in "ab"}
    seconds = take_turns(steps, 3)
    assert "".join(calls) == "ab" + "abbaab"
    assert [len(times) for times in seconds.values()] == [3, 3]


def test_every_step_is_timed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def takes(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("lors.system.timing.time", SimpleNamespace(perf_counter=lambda: now[0]))
    seconds = take_turns({"slow": lambda: takes(4.0), "fast": lambda: takes(0.5)}, 3)
    assert seconds == {"slow": [4.0] * 3, "fast": [0.5] * 3}
    assert paired_difference(seconds["slow"], seconds["fast"]) == (3.5, 0)


def test_the_difference_is_paired() -> None:
    """What slows both, round by round, cancels."""
    difference, error = paired_difference([1.5, 101.5, 7.5], [1.0, 101.0, 7.0])
    assert (difference, error) == (0.5, 0)


def test_one_round_is_refused() -> None:
    with pytest.raises(InputError, match="time more"):
        take_turns({}, 1)
