from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from lors.config import DistillConfig
from lors.distill import Distillation
from lors.errors import InputError
from lors.logbook import Logbook
from lors.progress import Silent
from lors.synthetic import SyntheticPairs


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def state(iteration: int = 0) -> Distillation:
    made = Distillation(SyntheticPairs(torch.zeros(2, 3), torch.zeros(2, 3)), DistillConfig(), 0)
    made.iteration = iteration
    made.synthetic.images.data.fill_(float(iteration))
    return made


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


def test_seconds_add_up_over_sittings_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    book = Logbook(tmp_path)
    book.metrics.write_text('{"iteration": 0, "seconds": 100.0}\n{"iteration": 0, "sec')
    book.resume(state(), Silent())
    assert 100 <= book.log({"iteration": 1})["seconds"] < 110
    assert book.seconds() >= 100
    assert len(book.metrics.read_text().splitlines()) == 2
