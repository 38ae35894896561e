from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from lors.system.showing.bars import Bars
from tests.system.showing.test_work import Clock


def terminal(width: int, height: int = 30) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None
    )


class Still(Bars):
    """Bars that are only drawn by ``screen``."""

    def _open(self) -> None:
        pass

    def _close(self) -> None:
        pass


def screen(bars: Bars) -> list[str]:
    """The rows that a terminal would show now."""
    console = bars.rows.console
    with console.capture() as captured:
        console.print(bars.rows.get_renderable())
    return captured.get().splitlines()


def long_run(width: int) -> Bars:
    """After other work, a distillation of which an hour is left."""
    clock = Clock()
    bars = Still(terminal(width), clock)
    for _ in bars.track(range(2), "wait for other processes", 2):
        clock.now += 30
    items = bars.track(range(10_000), "distil", 10_000, done=6_000)
    next(items)
    bars.note(rate_image=0.0937, rate_text=0.0975, loss=0.8123, recall=34.21)
    for _ in range(400):
        clock.now += 1
        next(items)
    bars._kept = items  # type: ignore[attr-defined]  # an iterator that is dropped ends
    return bars


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_bar_the_count_and_the_time_left_stay_at_any_width(width: int) -> None:
    finished, row = screen(long_run(width))
    assert re.search(r"━{8,} +2/2 0:01:00", finished)
    assert re.match(r"distil +━{2,}.* 6400/10000 1:00:00", row)
    assert max(len(finished), len(row)) <= width


@pytest.mark.parametrize(
    ("width", "facts"),
    [
        (60, []),
        (70, ["loss 0.812"]),
        (80, ["loss 0.812", "recall 34.2"]),
        (100, ["loss 0.812", "recall 34.2", "rate image 0.0937"]),
        (120, ["loss 0.812", "recall 34.2", "rate image 0.0937", "rate text 0.0975"]),
    ],
)
def test_facts_take_the_room_that_is_left_the_most_important_first(
    width: int, facts: list[str]
) -> None:
    row = screen(long_run(width))[-1]
    assert row.partition("1:00:00")[2].strip() == " ".join(facts)


def test_an_expert_shows_its_epochs_while_it_trains() -> None:
    clock = Clock()
    bars = Still(terminal(80), clock)
    experts = bars.track(range(20), "train experts", 20)
    next(experts)
    epochs = bars.track(range(4, 10), "epoch", 10, done=4)
    next(epochs)
    clock.now = 5
    next(epochs)
    outer, inner = screen(bars)
    assert re.match(r"train experts .* 0/20 0:16:15", outer)
    assert re.match(r"  epoch .* 5/10 0:00:25", inner)
    assert list(epochs) == [6, 7, 8, 9]
    next(experts)
    (row,) = screen(bars)
    assert re.match(r"train experts .* 1/20 0:02:38", row)


def test_what_cannot_be_counted_is_shown_until_something_can() -> None:
    bars = Still(terminal(80), Clock())
    bars.doing("loading PyTorch")
    assert screen(bars)[0].startswith("loading PyTorch")
    bars.doing("preparing")
    (row,) = screen(bars)
    assert row.startswith("preparing")
    items = bars.track(range(2), "distil", 2)
    next(items)
    (row,) = screen(bars)
    assert row.startswith("distil")


def test_finished_rows_scroll_away_before_they_hide_the_work_under_way() -> None:
    console = terminal(80, height=10)
    bars = Still(console, Clock())
    for number in range(20):
        for _ in bars.track(range(1), f"work {number}", 1):
            rows = screen(bars)
            assert rows[-1].startswith(f"work {number} ")
            assert len(rows) < 10
    assert isinstance(console.file, io.StringIO)
    assert "work 0 " in console.file.getvalue()


def test_a_sentence_cannot_command_the_terminal() -> None:
    bars = Still(terminal(80), Clock())
    bars.say("the file \x1b[2J[bold]x[/bold]\nis damaged")
    assert isinstance(bars.rows.console.file, io.StringIO)
    assert bars.rows.console.file.getvalue() == "the file \\x1b[2J[bold]x[/bold] is damaged\n"
