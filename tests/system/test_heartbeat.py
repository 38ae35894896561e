"""Waits for processes that are stopped end; waits for slow ones do not."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from lors.system import heartbeat, ranks
from lors.system.errors import InputError, LorsError
from tests.ranks import started_ranks

LIMIT = 4


def test_a_timeout_that_is_no_number_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("soon", "0", "-1", "nan", "1e999"):
        monkeypatch.setenv("LORS_TIMEOUT", seconds)
        with pytest.raises(InputError, match="is not a number of seconds"):
            heartbeat.timeout()


def test_silence_is_time_in_which_this_process_itself_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 9.0, 4000.0, 4001.0, 4002.0])
    monkeypatch.setenv("LORS_TIMEOUT", "100")  # a look every 5 seconds
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    silence = heartbeat.Silence()
    found = [silence.seconds(sign) for sign in ("a", "a", "a", "a", "b", "b")]
    assert found == [0, 4, 9, 19, 0, 1]


def test_signs_of_life_return_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORS_TIMEOUT", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    store = TCPStore("127.0.0.1", 0, None, True)
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    watch = heartbeat.RankWatch()
    with watch.on(own=1, count=2):
        watch.beat("start")
        assert int(store.get("start/alive/1")) > 0
        port = store.port
        del store
        store = TCPStore("127.0.0.1", port, None, True)
        assert int(store.get("start/alive/1")) > 0


def stop_here(*arguments: Any, **named: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def meet(moment: str, victim: int, said: str) -> None:
    """Two ranks that meet, one of which stops or is slow; a file gets what the other one says."""
    os.environ["LORS_TIMEOUT"] = str(LIMIT)
    mine = int(os.environ["RANK"]) == victim
    if not mine:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    if mine and moment == "the start":
        stop_here()
    if mine and moment == "the second group":
        setattr(dist, "new_group", stop_here)  # noqa: B010
    try:
        with ranks.joined():
            if mine and moment == "the work":
                stop_here()
            if mine and moment == "slow work":
                time.sleep(1.5 * LIMIT)
            ranks.gather(0)
    except LorsError as error:
        os.write(2, f"error: {error}".encode())
        sys.exit(1)


CASES = [
    ("the start", 1),
    ("the second group", 1),
    ("the work", 1),
    ("the work", 0),
    ("slow work", 1),
]
SENTENCES = [
    "nothing has been heard of ",
    "rank 1 has shown no sign of life for ",
    "rank 1 has shown no sign of life for ",
    "rank 0, which keeps the store at 127.0.0.1",
    "",
]


def test_a_wait_ends_if_the_other_rank_is_stopped_but_not_if_it_is_slow(tmp_path: Path) -> None:
    with ExitStack() as stack:
        groups = [
            stack.enter_context(started_ranks(2, meet, *case, str(tmp_path / str(place))))
            for place, case in enumerate(CASES)
        ]
        waiting = [group[1 - victim] for group, (_, victim) in zip(groups, CASES, strict=True)]
        for process in waiting:
            process.join(60)
        assert [process.exitcode for process in waiting] == [1, 1, 1, 1, 0]
    for place, sentence in enumerate(SENTENCES):
        assert sentence in (tmp_path / str(place)).read_text()
