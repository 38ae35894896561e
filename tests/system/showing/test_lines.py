from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from rich.console import Console

from lors.system.showing.lines import LONGEST_SILENCE, Lines
from tests.system.showing.test_work import Clock


class Log(Lines):
    """Lines of a program that started at zero, and whose clock is set by hand."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.clock = Clock()
        self._bytes = io.BytesIO()
        file = io.TextIOWrapper(self._bytes, encoding)
        super().__init__(Console(file=file, width=40), 0.0, self.clock)

    def wait(self, seconds: int) -> None:
        """Let time pass, and write what is due each second, as the thread does."""
        for _ in range(seconds):
            self.clock.now += 1
            self._tick()

    def _open(self) -> None:
        """Begin without the thread, which looks at each second of the real time."""

    @property
    def text(self) -> str:
        """What was written so far; what was not flushed is not in it."""
        return self._bytes.getvalue().decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def test_a_line_has_the_time_the_count_the_facts_and_the_time_left() -> None:
    log = Log()
    log.clock.now = 3600
    for step in log.track(range(3), "distil", 500, done=497):
        log.note(rate_image=0.1, loss=0.81234 - step / 100, recall=34.21)
        log.wait(4)
    assert log.lines == [
        "1:00:01 distil 497/500, loss 0.812, recall 34.2, rate image 0.1",
        "1:00:05 distil 498/500, loss 0.802, recall 34.2, rate image 0.1, 0:00:07 left",
        "1:00:10 distil 499/500, loss 0.792, recall 34.2, rate image 0.1, 0:00:02 left",
        "1:00:12 distil 500/500, loss 0.792, recall 34.2, rate image 0.1, took 0:00:12",
    ]


def test_lines_come_after_one_second_after_five_and_then_more_rarely_up_to_one_a_minute() -> None:
    log = Log()
    for _ in log.track(range(2), "measure", 2):  # one item may take hours
        log.wait(3600)
    clocks = [line.split()[0].split(":") for line in log.lines]
    times = [3600 * int(h) + 60 * int(m) + int(s) for h, m, s in clocks]
    assert times[:6] == [1, 5, 10, 20, 40, 80]
    assert {b - a for a, b in pairwise(times[5:-1])} == {LONGEST_SILENCE}
    assert times[-1] == 7200


def test_work_of_less_than_a_second_is_not_mentioned() -> None:
    log = Log()
    for _ in log.track(range(1000), "decode images", 1000):
        log.clock.now += 0.0009
        log._tick()
    assert log.text == ""


def test_work_that_is_left_early_says_where_it_stopped() -> None:
    log = Log()
    for step in log.track(range(9), "distil", 9):
        log.wait(2)
        if step == 1:
            break
    assert log.lines[-1] == "0:00:04 distil 1/9, stopped after 0:00:04"


def test_work_that_fails_says_where_it_stopped() -> None:
    log = Log()
    items = log.track(range(9), "distil", 9)
    next(items)
    log.wait(2)
    log.stop()  # as by an exception, whose traceback keeps the iterator alive
    assert log.lines[-1] == "0:00:02 distil 0/9, stopped after 0:00:02"
    written = log.text
    del items
    assert log.text == written


def test_epochs_are_part_of_the_line_of_their_experts() -> None:
    log = Log()
    for _ in log.track(range(2), "train experts", 2):
        for _ in log.track(range(3), "epoch", 3):
            log.wait(2)
    assert log.lines == [
        "0:00:01 train experts 0/2, epoch 0/3",
        "0:00:05 train experts 0/2, epoch 2/3, 0:00:07 left",
        "0:00:10 train experts 1/2, epoch 1/3, 0:00:02 left",
        "0:00:12 train experts 2/2, took 0:00:12",
    ]


def test_what_cannot_be_counted_is_said_at_once_and_again_if_it_lasts() -> None:
    log = Log()
    log.doing("loading PyTorch")
    assert log.lines == ["0:00:00 loading PyTorch"]
    log.wait(7)
    log.doing("preparing")
    items = log.track(range(2), "distil", 2)
    next(items)
    log.wait(1)
    assert [line.partition(" ")[2] for line in log.lines] == [
        "loading PyTorch",
        "loading PyTorch",
        "preparing",
        "distil 0/2",
    ]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("A sentence of more than forty characters stays one line.", None),
        ("Two\nlines\r\nand a\ttab", "Two lines and a tab"),
        ("\x1b[2Jgone \x07 \u202e", "\\x1b[2Jgone \\x07 \\u202e"),
        ("März ± [bold]1[/bold] \udcff", "M\\xe4rz \\xb1 [bold]1[/bold] \\udcff"),
    ],
)
def test_a_sentence_is_one_line_without_control_characters(said: str, written: str | None) -> None:
    log = Log("ascii")
    log.say(said)
    assert log.text == f"0:00:00 {written or said}\n"


def test_letters_stay_as_they_are_where_the_log_can_hold_them() -> None:
    log = Log()
    log.say("März")
    assert log.lines == ["0:00:00 März"]


@pytest.fixture
def piped() -> Iterator[tuple[Console, Callable[[], str]]]:
    """A console that writes to a pipe, and what reads a line from its other end."""
    inlet, outlet = os.pipe()
    with os.fdopen(inlet) as reading, os.fdopen(outlet, "w") as writing:
        yield Console(file=writing), reading.readline


def test_a_single_item_that_takes_long_is_reported_while_it_runs(
    piped: tuple[Console, Callable[[], str]],
) -> None:
    console, read_line = piped
    lines = Lines(console, 0.0, Clock())
    lines.start()
    for _ in lines.track(range(2), "measure", 2):
        assert isinstance(lines._clock, Clock)
        lines._clock.now += 100
        assert read_line().startswith(f"0:0{int(lines._clock.now // 60)}:")  # waits for the line
    lines.stop()
    assert read_line() == "0:03:20 measure 2/2, took 0:03:20\n"
