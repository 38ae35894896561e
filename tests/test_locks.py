from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lors.errors import InputError
from lors.locks import locked, sole_user

HOLD = """
import sys, time
from pathlib import Path
from lors.locks import sole_user
with sole_user(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_free_again_once_its_process_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is working in"), sole_user(tmp_path):
            pass
        other.kill()
    with sole_user(tmp_path):
        pass


def test_a_lock_that_is_held_is_not_taken_and_can_be_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
    with locked(path, wait=True) as third:
        assert third
