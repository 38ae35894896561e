from __future__ import annotations

import time

import pytest
import torch

from lors.system import ranks
from lors.system.errors import InputError
from tests.ranks import run_ranks


def exchanged(offset: int) -> list[object]:
    own = torch.full((2, 2), float(ranks.rank() + offset))
    ranks.all_reduce([own])
    everyone = ranks.gather({"rank": ranks.rank()})
    return [own.tolist(), everyone, ranks.divide(range(5), lambda item: item * item)]


def stuck() -> None:
    time.sleep(60)


def fails_on_one() -> None:
    if ranks.rank() == 1:
        raise InputError("a bad rank")
    ranks.gather(0)


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_tell_each_other_numbers_and_json(size: int) -> None:
    everyone = [{"rank": rank} for rank in range(size)]
    whole = float(sum(range(size)) + 3 * size)
    expected = [[[whole, whole], [whole, whole]], everyone, [0, 1, 4, 9, 16]]
    assert run_ranks(size, exchanged, 3) == [expected] * size


def test_a_rank_that_fails_or_hangs_is_reported_at_once() -> None:
    with pytest.raises(AssertionError, match=r"rank 0: [\s\S]*could not reach[\s\S]*a bad rank"):
        run_ranks(2, fails_on_one, limit=30)
    with pytest.raises(AssertionError, match=r"ranks \[0, 1\] took over 1 s"):
        run_ranks(2, stuck, limit=1)


def sent_alone() -> list[object]:
    with ranks.alone():
        return [ranks.rank(), ranks.size(), ranks.gather("x"), ranks.from_rank_zero(lambda: "y")]


def test_a_rank_can_work_as_if_alone() -> None:
    assert run_ranks(2, sent_alone) == [[0, 1, ["x"], "y"]] * 2


def raised() -> list[str]:
    def refuse() -> None:
        raise InputError("rank 0 refuses")

    with pytest.raises(InputError) as error:
        ranks.from_rank_zero(refuse)
    return [str(error.value)]


def test_what_rank_0_raises_is_raised_on_all() -> None:
    assert run_ranks(2, raised) == [["rank 0 refuses"]] * 2
