from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lors.config import DistillConfig
from lors.distillation.state import State
from lors.runs.logbook import Logbook
from lors.sets.synthetic import SyntheticPairs
from lors.system.errors import InputError
from lors.system.progress import Silent


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def state(iteration: int = 0) -> State:
    made = State(SyntheticPairs(torch.zeros(2, 3), torch.zeros(2, 3)), DistillConfig(), 0)
    made.iteration = iteration
    made.synthetic.images.data.fill_(float(iteration))
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by the clock of the logbook, to be set."""
    now = [1000.0]
    monkeypatch.setattr("lors.runs.logbook.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def kept(tmp_path: Path) -> Logbook:
    """A logbook with checkpoints at 2 and 4, and records up to 5."""
    book = Logbook(tmp_path)
    for iteration in range(1, 6):
        book.log({"iteration": iteration})
        if iteration % 2 == 0:
            book.checkpoint(state(iteration))
    return book


def test_a_run_continues_from_its_newest_checkpoint(tmp_path: Path) -> None:
    kept(tmp_path)
    book, again = Logbook(tmp_path), state()
    assert book.reached() == 4
    book.resume(again, Silent())
    assert again.iteration == 4
    assert (again.synthetic.images == 4).all()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_the_checkpoint_before_stands_in_for_a_damaged_one(how: str, tmp_path: Path) -> None:
    book = kept(tmp_path)
    if how == "missing":  # killed between the two steps of writing one
        book.newest.unlink()
    else:
        book.newest.write_bytes(book.newest.read_bytes()[:-5])
    again, listener = state(), Listener()
    assert Logbook(tmp_path).reached() == 2
    Logbook(tmp_path).resume(again, listener)
    assert again.iteration == 2
    assert [("checkpoint before it" in text) for text in listener.said] == [True] * (
        how == "truncated"
    )


def test_without_a_whole_checkpoint_it_says_so(tmp_path: Path) -> None:
    book = kept(tmp_path)
    for path in (book.newest, book.previous):
        path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        Logbook(tmp_path).resume(state(), Silent())


def test_seconds_add_up_over_sittings_and_a_cut_line_is_dropped(
    tmp_path: Path, clock: list[float]
) -> None:
    book = Logbook(tmp_path)
    book.metrics.write_text('{"iteration": 0, "seconds": 100.0}\n{"iteration": 0, "sec')
    clock[0] += 7  # before the run goes on
    book.resume(state(), Silent())
    clock[0] += 2.5
    assert book.log({"iteration": 1})["seconds"] == 102.5
    assert book.seconds() == 102.5
    assert len(book.metrics.read_text().splitlines()) == 2


DAMAGED = {
    "zeros": b"\0" * 40 + b"\n",
    "zeros before a record": b"\0" * 40 + b'{"iteration": 2, "seconds": 2.0}\n',
    "empty": b"\n",
    "no JSON": b"half a reco\n",
    "half a line": b'{"iteration": 2, "sec{"iteration": 3, "seconds": 3.0}\n',
    "an empty object": b"{}\n",
    "null": b"null\n",
    "a list": b"[1]\n",
    "no iteration": b'{"seconds": 2.0}\n',
    "no seconds": b'{"iteration": 2}\n',
    "an iteration in words": b'{"iteration": "2", "seconds": 2.0}\n',
    "an iteration too many": b'{"iteration": 1e400, "seconds": 2.0}\n',
    "seconds without end": b'{"iteration": 2, "seconds": Infinity}\n',
    "a loss in words": b'{"iteration": 2, "seconds": 2.0, "loss": "low"}\n',
    "a loss too large": b'{"iteration": 2, "seconds": 2.0, "loss": 1' + b"0" * 400 + b"}\n",
    "nested without end": b"[" * 100_000 + b"\n",
    "no UTF-8": b'{"iteration": 2, "\xff": 1, "seconds": 2.0}\n',
}


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_line_of_the_metrics_is_skipped_and_said(line: bytes, tmp_path: Path) -> None:
    kept(tmp_path)
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line, *lines[2:]]))
    book, again, listener = Logbook(tmp_path), state(), Listener()
    book.resume(again, listener)
    assert again.iteration == 4
    assert [json.loads(line)["iteration"] for line in path.read_text().splitlines()] == [1, 3, 4]
    assert len(listener.said) == 1
    assert "1 damaged line" in listener.said[0]
    assert str(path) in listener.said[0]
    assert book.seconds() == json.loads(lines[3])["seconds"]  # of the last checkpoint
    Logbook(tmp_path).resume(state(), listener)
    assert len(listener.said) == 1  # what was skipped is gone


def test_metrics_of_which_nothing_is_whole_do_not_stop_a_run(
    tmp_path: Path, clock: list[float]
) -> None:
    book = kept(tmp_path)
    book.metrics.write_bytes(b"\0\n" * 500)
    again, listener = state(), Listener()
    book.resume(again, listener)
    assert again.iteration == 4
    assert "500 damaged lines" in listener.said[0]
    assert book.metrics.read_bytes() == b""
    clock[0] += 3
    assert book.log({"iteration": 5})["seconds"] == 3


def test_records_that_are_whole_keep_their_bytes(tmp_path: Path) -> None:
    book = Logbook(tmp_path)
    book.log({"iteration": 0, "loss": 0.1 + 0.2, "rate_image": 1e-17, "recall": float("nan")})
    before = book.metrics.read_bytes()
    book.resume(state(), Silent())
    assert book.metrics.read_bytes() == before


def test_the_metrics_are_on_the_disk_before_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, synced, sync = kept(tmp_path), list[tuple[str, int]](), os.fsync

    def watched(descriptor: int) -> None:
        sync(descriptor)
        now = os.fstat(descriptor)
        if os.path.samestat(now, book.metrics.stat()):
            synced.append((str(Logbook(tmp_path).reached()), now.st_size))

    monkeypatch.setattr(os, "fsync", watched)
    book.log({"iteration": 6})
    book.checkpoint(state(6))
    assert synced == [("4", book.metrics.stat().st_size)]
    assert book.reached() == 6
