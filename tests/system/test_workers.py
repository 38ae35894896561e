from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from lors.system.errors import LorsError
from lors.system.workers import as_they_end, worker_pool


def send_itself(number: int) -> None:
    """Let a worker send itself a signal, and wait for it."""
    with worker_pool(1) as pool:
        (done,) = as_they_end(pool, [pool.submit(signal.raise_signal, number)])
        done.result()


def test_results_come_as_they_are_there() -> None:
    with worker_pool(2) as pool:
        futures = [pool.submit(pow, 2, power) for power in range(5)]
        assert {done.result() for done in as_they_end(pool, futures)} == {1, 2, 4, 8, 16}


def test_a_stopped_worker_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORS_TIMEOUT", "1")
    with pytest.raises(LorsError, match=r"process \d+ has been stopped for 1 s") as error:
        send_itself(signal.SIGSTOP)
    pid = next(int(word) for word in str(error.value).split() if word.isdigit())
    assert not psutil.pid_exists(pid)


def test_a_killed_worker_is_noticed_at_once() -> None:
    with pytest.raises(BrokenProcessPool):
        send_itself(signal.SIGKILL)


def test_an_interrupt_ends_a_stopped_worker() -> None:
    pids = []

    def interrupted() -> None:
        with worker_pool(1) as pool:
            pids.append(pool.submit(os.getpid).result())
            os.kill(pids[0], signal.SIGSTOP)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not psutil.pid_exists(pids[0])
