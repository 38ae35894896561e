from __future__ import annotations

import threading

import pytest
import torch

from lors.system import ranks
from lors.system.cores import (
    GRAIN,
    SET_BY_USER,
    check_wanted,
    fitted_threads,
    side_by_side,
    threads_for,
)
from lors.system.seeding import global_seed


@pytest.fixture(autouse=True)
def four_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with four cores whose user has chosen nothing; no operation is run."""
    for name in SET_BY_USER:
        monkeypatch.delenv(name, raising=False)
    threads = [4]
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)


@pytest.mark.parametrize(
    ("work", "threads"), [(0, 1), (GRAIN, 1), (2 * GRAIN, 2), (3.5 * GRAIN, 3), (99 * GRAIN, 4)]
)
def test_threads_grow_with_the_work_up_to_the_cores(work: float, threads: int) -> None:
    assert threads_for(work, cores=4) == threads
    with fitted_threads(work):
        assert torch.get_num_threads() == threads
        with fitted_threads(work):  # inside, the same number again
            assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("name", SET_BY_USER)
def test_a_number_that_the_user_set_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "4")
    with fitted_threads(0):
        assert torch.get_num_threads() == 4
        assert _used([1, 2]) == {threading.get_ident()}


def test_cores_that_are_left_over_work_side_by_side() -> None:
    with fitted_threads(2 * GRAIN):
        barrier = threading.Barrier(2)  # which is passed only by two at a time
        passed = list(side_by_side(lambda item: (item, barrier.wait(5)), range(4)))
    assert [item for item, _ in passed] == [0, 1, 2, 3]
    with fitted_threads(4 * GRAIN):
        assert _used([1, 2]) == {threading.get_ident()}


def test_what_is_divided_runs_side_by_side_and_keeps_its_order() -> None:
    with fitted_threads(0):
        barrier = threading.Barrier(4)
        found = ranks.divide(range(4), lambda item: [10 * item, barrier.wait(5)])
    assert [item for item, _ in found] == [0, 10, 20, 30]


def test_an_error_of_one_is_raised_in_its_place() -> None:
    def work(item: int) -> float:
        return 1 / item

    with fitted_threads(0):
        results = side_by_side(work, [1, 2, 0, 4])
        assert [next(results), next(results)] == [1.0, 0.5]
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_global_seeds_of_several_threads_do_not_mix() -> None:
    def drawn(seed: int) -> list[float]:
        with global_seed(seed):
            return [torch.rand(()).item() for _ in range(50)]

    alone = [drawn(seed) for seed in range(8)]
    with fitted_threads(0):
        assert list(side_by_side(drawn, range(8))) == alone


def _used(items: list[int]) -> set[int]:
    return set(side_by_side(lambda item: threading.get_ident(), items))


def test_work_that_nobody_waits_for_ends() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item:
            begun.set()
            try:
                while True:
                    check_wanted()
            finally:
                ended.set()
        return item

    with fitted_threads(0):
        results = side_by_side(work, range(2))
        assert next(results) == 0
        assert begun.wait(60)
        results.close()  # as Ctrl-C does; it waits for what runs
    assert ended.is_set()
    check_wanted()  # others go on
