from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lors.system.stopping import INTERRUPTED, SIGNALS, HungUp, Terminated, listening, unbroken


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_block_without_signals_is_left_alone() -> None:
    with unbroken() as asked_to_stop:
        assert not asked_to_stop()


ENDS = [
    (signal.SIGINT, KeyboardInterrupt),
    (signal.SIGTERM, Terminated),
    (signal.SIGHUP, HungUp),
]


@pytest.mark.parametrize(("number", "error"), ENDS)
def test_a_signal_waits_for_the_end_of_the_block(
    number: int, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def step() -> None:
        with unbroken() as asked_to_stop:
            os.kill(os.getpid(), number)
            asked.append(asked_to_stop())

    with pytest.raises(error) as raised:
        step()
    assert raised.type is error
    assert getattr(error, "code", 130) == 128 + number
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


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_so(number: int) -> None:
    before = signal.signal(number, signal.SIG_IGN)  # as nohup does
    try:
        with listening(), unbroken() as asked_to_stop:
            os.kill(os.getpid(), number)
            assert not asked_to_stop()
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(("number", "error"), ENDS)
def test_outside_a_step_a_signal_is_an_exception(number: int, error: type[BaseException]) -> None:
    with pytest.raises(error), listening():
        os.kill(os.getpid(), number)


def test_a_closed_terminal_does_not_keep_a_step_from_its_end() -> None:
    ours, theirs = os.openpty()
    stream = os.dup(2)
    os.dup2(theirs, 2)
    try:
        with pytest.raises(Terminated), unbroken() as asked_to_stop:  # noqa: PT012
            os.close(ours)
            with pytest.raises(OSError, match="Input/output"):
                os.write(2, b"nobody reads this")
            os.kill(os.getpid(), signal.SIGHUP)
            assert asked_to_stop()
            os.write(2, b"nor this, but it is no error")
    finally:
        os.dup2(stream, 2)
        os.close(stream)
        os.close(theirs)


def test_quitting_does_not_wait_for_a_terminal_that_hangs() -> None:
    program = """
import os, signal, threading
from lors.system.stopping import quitting

with quitting(threading.Event().wait):
    os.kill(os.getpid(), signal.SIGTERM)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 143
    assert ended.stderr == f"{INTERRUPTED}\n"
