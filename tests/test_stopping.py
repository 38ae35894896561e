from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from lors.stopping import Terminated, unbroken


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_block_without_signals_is_left_alone() -> None:
    with unbroken() as asked_to_stop:
        assert not asked_to_stop()


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_waits_for_the_end_of_the_block(
    number: int, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def step() -> None:
        with unbroken() as asked_to_stop:
            os.kill(os.getpid(), number)
            asked.append(asked_to_stop())

    with pytest.raises(error):
        step()
    assert asked == [True]
    assert "Once more to stop at once" in capfd.readouterr().err


def test_the_second_signal_does_not_wait() -> None:
    def step() -> None:
        with unbroken():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the second one was held back")

    with pytest.raises(KeyboardInterrupt):
        step()


def test_an_error_of_the_block_is_not_hidden() -> None:
    def step() -> None:
        with unbroken():
            os.kill(os.getpid(), signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        step()


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with unbroken() as asked_to_stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not asked_to_stop()
    finally:
        signal.signal(signal.SIGINT, before)
