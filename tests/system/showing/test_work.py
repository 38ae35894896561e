from __future__ import annotations

import pytest

from lors.system.showing.work import Work
from lors.system.showing.works import Works


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_counts_what_this_run_did_and_not_what_one_before_it_did() -> None:
    work = Work("distil", total=500, done=400, begun=0)
    assert work.left(0) is None
    for second in range(1, 11):
        work.advance(second)
    assert (work.count(), work.left(10)) == ("410/500", 90)


def test_the_time_left_falls_between_items_but_leaves_time_for_those_to_come() -> None:
    work = Work("train", total=4, done=0, begun=0)
    work.advance(10)
    assert [work.left(now) for now in (10, 15, 20, 500)] == [30, 25, 20, 20]


def test_epochs_count_as_parts_of_their_expert() -> None:
    clock = Clock()
    works = Works(clock)
    experts = works.track(range(20), "train experts", 20)
    next(experts)
    (outer,) = works._works
    for _ in works.track(range(10), "epoch", 10):
        if clock.now:
            assert outer.left(clock.now) == pytest.approx(200 * 3 - clock.now)
        clock.now += 3
    assert outer.left(clock.now) == pytest.approx(190 * 3)  # the expert is trained and being saved
    next(experts)
    assert (outer.done, outer.left(clock.now)) == (1, 190 * 3)


def test_epochs_trained_before_make_no_expert_look_fast() -> None:
    clock = Clock()
    works = Works(clock)
    experts = works.track(range(2), "train experts", 2)
    next(experts)
    outer = works._works[-1]
    epochs = works.track(range(8, 10), "epoch", 10, done=8)
    next(epochs)
    clock.now = 5
    next(epochs)
    assert outer.left(5) == pytest.approx(11 * 5)


def test_work_that_is_left_early_is_over() -> None:
    works = Works()
    for _ in works.track(range(3), "distil", 3):
        break
    works.note(loss=1.0)
    assert works._works == []


def test_every_item_passes_through_even_if_nothing_is_to_be_shown() -> None:
    assert list(Works().track([1, 2], "none", 0)) == [1, 2]
    assert list(Works().track([1, 2], "some", 2)) == [1, 2]
