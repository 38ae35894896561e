from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import pytest

from lors.system.errors import InputError, LorsError
from lors.system.locks import locked, sole_user
from lors.system.progress import Silent

HOLD = """
import sys
from pathlib import Path
from lors.system.locks import sole_user
with sole_user(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Said(Silent):
    """Keeps the sentences that were said."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, text: str) -> None:
        self.sentences.append(text)


def test_a_folder_is_free_again_once_its_process_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        named = rf"another process is working in .* \(process {other.pid} on "
        with pytest.raises(InputError, match=named), sole_user(tmp_path):
            pass
        other.kill()
    with sole_user(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_lock_of_a_stopped_process_is_waited_for_until_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_TIMEOUT", "1")
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        os.kill(other.pid, signal.SIGSTOP)
        said = Said()
        silent = rf"process {other.pid} on .* holds .*\.lock' and has shown no sign of life for 1 s"
        with pytest.raises(LorsError, match=silent), locked(path, True, said):
            pass
        other.kill()
    (sentence,) = said.sentences
    assert sentence.startswith(f"Waiting for process {other.pid} on ")
    with locked(path, wait=True) as mine:
        assert mine


def test_a_lock_is_waited_for_as_long_as_its_holder_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_TIMEOUT", "1")
    held, path = threading.Event(), tmp_path / ".lock"

    def hold() -> None:
        with locked(path):
            held.set()
            time.sleep(3)

    with ThreadPoolExecutor() as pool:
        done = pool.submit(hold)
        assert held.wait(30)
        path.with_name(".lock.holder").unlink()  # it is written again
        with locked(path, wait=True) as mine:
            assert mine
            assert path.with_name(".lock.holder").read_text().startswith(f"process {os.getpid()} ")
        done.result()
    assert [file.name for file in tmp_path.iterdir()] == [".lock"]


def test_a_lock_that_is_held_is_not_taken_and_can_be_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
    with locked(path, wait=True) as third:
        assert third


def test_a_note_that_is_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, note = tmp_path / "precious", tmp_path / ".lock.holder"
    precious.write_text("keep")
    note.symlink_to(precious)
    with locked(tmp_path / ".lock"):
        assert note.read_text().startswith(f"process {os.getpid()} on ")
    assert precious.read_text() == "keep"
    assert not os.path.lexists(note)
