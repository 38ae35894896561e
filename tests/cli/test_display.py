"""Commands as a shell starts them, with a terminal and without."""

from __future__ import annotations

import io
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app, main
from lors.cli.app import console
from lors.cli.display import LOADING, Display


@contextmanager
def started(output: int, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """``lors distill tiny`` with this file descriptor as its output; ended by SIGTERM."""
    command = [sys.executable, "-m", "lors", "distill", "tiny", "--out", str(folder)]
    with subprocess.Popen(
        command, stdout=output, stderr=subprocess.PIPE, env={**os.environ, **environment}
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 143, errors
    assert b"The same command continues" in errors


def test_a_log_says_at_once_what_is_loading_and_an_interruption_then_is_no_traceback(
    tmp_path: Path,
) -> None:
    inlet, outlet = os.pipe()
    with os.fdopen(inlet) as log, started(outlet, tmp_path, FORCE_COLOR="1"):
        os.close(outlet)
        assert log.readline().partition(" ")[2] == f"{LOADING}\n"


def test_a_terminal_shows_what_is_loading(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    shown = b""
    with started(slave, tmp_path, TERM="xterm", COLUMNS="80"):
        while LOADING.encode() not in shown:
            shown += os.read(master, 1000)  # waits for more
    os.close(slave)
    os.close(master)
    assert b"\x1b[" in shown


def test_a_log_has_plain_lines_and_every_sentence(tmp_path: Path) -> None:
    changes = ["data.pairs.test=10", "evaluate.seeds=1", "evaluate.epochs=2"]
    command = ["distill", "tiny", *changes, "--no-references", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    lines = result.output.partition("Recall on the test split")[0].strip().splitlines()
    assert all(line[:7].replace(":", "").isdigit() and line.isascii() for line in lines)
    assert lines[0].partition(" ")[2] == LOADING
    assert any("The test split has 10 images, too few" in line for line in lines)
    assert any("Warning: " in line for line in lines)
    assert "\x1b" not in result.output


def test_ranks_but_the_first_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "quiet", True)
    with Display(LOADING) as display:
        display.say("something")
        display.note(loss=1.0)
        assert list(display.track([1, 2], "work", 2)) == [1, 2]
    assert capfd.readouterr() == ("", "")


def test_a_table_with_signs_that_a_log_cannot_hold_is_no_traceback(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "März")
    log = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", log)
    monkeypatch.setattr(sys, "argv", ["lors", "distill", "tiny", "--out", str(run)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert isinstance(log.buffer, io.BytesIO)
    written = log.buffer.getvalue().decode("ascii")
    assert "\\xb1" in written
    assert "M\\xe4rz" in written
