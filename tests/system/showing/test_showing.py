"""How progress is shown outside notebooks: on a terminal, in a log, in other processes."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.showing import as_progress, showing_progress, shown_progress
from lors.system.showing.bars import Bars
from lors.system.showing.lines import Lines
from lors.system.showing.notebook import Notebook
from lors.system.showing.works import Works

PROGRAM = """
import time
from lors.system.showing import showing_progress
with showing_progress() as progress:
    progress.say("Warning: look.")
    for step in progress.track(range(1000), "distil", 1000):
        progress.note(loss=0.5)
        time.sleep(0.0015)
        if step == 500:
            print("printed by the loss")
            {then}
"""
FAILS = "raise ValueError('wrong')"


def on_terminal(code: str, stdout: int | None = None) -> str:
    """What a program writes to a terminal; its stdout may go elsewhere."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command, out = [sys.executable, "-c", code], slave if stdout is None else stdout
    with subprocess.Popen(command, stdout=out, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with suppress(OSError):  # how Linux says that the program has closed it
            while part := os.read(master, 10_000):
                shown += part
    os.close(master)
    assert process.returncode == ("raise" in code)
    return shown.decode()


def test_a_terminal_shows_a_bar_that_ends_whole_and_gives_the_cursor_back() -> None:
    shown = on_terminal(PROGRAM.format(then=""))
    assert "\x1b[?25l" in shown
    last = shown.rpartition("distil")[2]
    assert re.search(r"━ 1000/1000 0:00:0\d loss 0\.5", re.sub(r"\x1b\[[\d;]*m", "", last))
    assert last.rstrip().endswith("\x1b[?25h")
    assert shown.count("Warning: look.") == shown.count("printed by the loss") == 1
    assert len(shown.split("\x1b[1A")) < 200  # drawings, of 1,000 items


def test_after_an_exception_the_cursor_is_back_before_the_traceback() -> None:
    shown = on_terminal(PROGRAM.format(then=FAILS))
    assert shown.index("\x1b[?25h") < shown.index("Traceback")


def test_an_exception_in_a_loop_without_an_end_leaves_the_cursor_too() -> None:
    code = "import time\nfrom lors.system.showing import as_progress\nprogress = as_progress()\n"
    code += f"for _ in progress.track(range(9), 'distil', 9):\n    time.sleep(.3)\n    {FAILS}\n"
    shown = on_terminal(code)
    assert "ValueError: wrong" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_what_a_program_prints_stays_in_its_file(tmp_path: Path) -> None:
    with (tmp_path / "out.txt").open("w") as file:
        shown = on_terminal(PROGRAM.format(then=""), file.fileno())
    assert (tmp_path / "out.txt").read_text() == "printed by the loss\n"
    assert "printed" not in shown
    assert "1000/1000" in shown


def test_a_log_has_a_few_lines_on_stderr_and_stdout_has_none() -> None:
    command = [sys.executable, "-c", PROGRAM.format(then="")]
    environment = {**os.environ, "FORCE_COLOR": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout == "printed by the loss\n"
    warning, *lines = ended.stderr.splitlines()
    assert warning == "0:00:00 Warning: look."
    assert 1 <= len(lines) <= 5
    assert all(re.match(r"0:00:\d\d distil \d+/1000, loss 0\.5, ", line) for line in lines)
    assert re.search(r"1000/1000, loss 0\.5, took 0:00:\d\d$", lines[-1])


def test_false_is_silent_and_true_is_not_even_in_ranks_after_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(as_progress(None), Works)
    monkeypatch.setenv("RANK", "1")
    assert isinstance(as_progress(False), Silent)
    assert isinstance(as_progress(None), Silent)
    assert isinstance(as_progress(True), Works)


class Mine(Silent):
    pass


def test_an_object_of_ones_own_is_used_as_it_is_and_not_ended() -> None:
    mine = Mine()
    assert as_progress(mine) is mine
    with shown_progress(quiet=True) as outer:
        with showing_progress(outer) as progress:
            assert progress is outer
        assert outer.running
    assert not outer.running


def test_a_call_within_another_joins_what_that_one_shows_and_does_not_end_it() -> None:
    with showing_progress(True) as outer:
        with showing_progress() as inner:
            assert inner is outer
        assert isinstance(outer, Works)
        assert outer.running
        found: list[Progress] = []
        other = threading.Thread(target=lambda: found.append(as_progress()))
        other.start()
        other.join()
        assert found != [outer]
    assert as_progress() is not outer


def test_what_is_no_progress_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"progress must be True, .*'yes' has no track"):
        as_progress("yes")  # type: ignore[arg-type]


class Quiet(Works):
    """Counts how often it was opened."""

    opened = closed = 0

    def _open(self) -> None:
        self.opened += 1

    def _close(self) -> None:
        self.closed += 1


def test_without_being_entered_it_runs_from_the_outermost_track_to_its_end() -> None:
    works = Quiet()
    for _ in works.track(range(2), "train experts", 2):
        for _ in works.track(range(2), "epoch", 2):
            assert works.running
        assert works.running
    assert not works.running
    list(works.track(range(2), "measure", 2))
    assert (works.opened, works.closed) == (2, 2)


def test_a_loop_that_an_exception_kept_alive_does_not_end_the_next_one() -> None:
    works = Quiet()
    kept = works.track(range(3), "distil", 3)
    next(kept)
    works.stop()
    with works:
        assert list(kept) == [1, 2]
        assert works.running
        assert works._works == []


class FakeShell:
    """As much of a kernel's shell as is needed until something is drawn."""

    execution_count = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lines(Console(file=io.StringIO())),
        lambda: Bars(Console(file=io.StringIO(), force_terminal=True)),
        lambda: Notebook(FakeShell()),
    ],
    ids=["lines", "bars", "notebook"],
)
def test_an_item_costs_some_microseconds(
    make: Callable[[], Works], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notebook, "_draw", lambda self: self._bundle())
    count, times = 10_000, []
    for _ in range(3):
        with make() as progress:
            begun = time.process_time()
            for step in progress.track(range(count), "distil", count):
                progress.note(loss=step)
            times.append(time.process_time() - begun)
    assert min(times) / count < 50e-6
