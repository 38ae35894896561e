"""The command line in processes of their own, ended in the ways that processes end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch

from lors.config import load_config
from lors.files.artifacts import load
from lors.runs.folders import SET
from lors.runs.logbook import Logbook
from lors.runs.pipeline import run
from lors.system.errors import InputError
from tests.processes import started_command

SETTINGS = ["distill.iterations=12", "distill.checkpoint_every=10", "distill.evaluate_every=0"]


def words(out: Path) -> list[str]:
    """Those of ``lors distill tiny``."""
    return ["distill", "tiny", *SETTINGS, "--no-references", "--out", str(out)]


def command(out: Path, *options: str) -> list[str]:
    """It, from the shell, perhaps with options of Python."""
    return [sys.executable, *options, "-m", "lors", *words(out)]


def lines(out: Path) -> int:
    path = out / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def wait_for_iterations(process: ForkServerProcess, out: Path, count: int) -> None:
    while lines(out) < count:
        assert process.is_alive()
        time.sleep(0.01)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    out = tmp_path_factory.mktemp("whole")
    run(load_config("tiny", SETTINGS), out, references=False)
    return load(out / SET, "distilled set")[1]


def check_it_continues(out: Path, uninterrupted: dict[str, torch.Tensor]) -> None:
    run(load_config("tiny", SETTINGS), out, references=False)
    found = load(out / SET, "distilled set")[1]
    assert all(torch.equal(found[name], tensor) for name, tensor in uninterrupted.items())


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_a_run_ended_by_a_signal_continues_to_the_same_bits(
    number: int, code: int, tmp_path: Path, uninterrupted: dict[str, torch.Tensor]
) -> None:
    out, said = tmp_path / "run", tmp_path / "said"
    with started_command(said, *words(out)) as process:
        wait_for_iterations(process, out, 5)
        with pytest.raises(InputError, match="another process is working"):
            run(load_config("tiny", SETTINGS), out, references=False)
        assert process.pid is not None
        os.kill(process.pid, number)
        process.join()
    assert process.exitcode == code
    if number != signal.SIGKILL:
        assert "The same command continues where it stopped" in said.read_text()
        assert Logbook(out).reached() == lines(out)  # the step was finished and saved
    check_it_continues(out, uninterrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("module", ["typer.core", "torch.storage"])
def test_a_signal_while_it_loads_ends_it_without_a_traceback(
    module: str, number: int, tmp_path: Path
) -> None:
    with subprocess.Popen(
        command(tmp_path / "run", "-X", "importtime"),  # a line for each module, once it is there
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any(line.split()[-1] == module for line in process.stderr)
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode in (-number, 128 + number)  # which shells tell as 128 + number
    assert "Traceback" not in errors
    assert not (tmp_path / "run").exists()


def test_a_run_whose_terminal_is_closed_saves_its_step(
    tmp_path: Path, uninterrupted: dict[str, torch.Tensor]
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        code = "import sys; from tests.processes import slow_command; slow_command(sys.argv[1:])"
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
        os.execvpe(sys.executable, [sys.executable, "-c", code, *words(tmp_path)], environment)
    while lines(tmp_path) < 5:
        os.read(terminal, 4096)  # what it shows; ends with an error if it does
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    assert Logbook(tmp_path).reached() == lines(tmp_path)
    check_it_continues(tmp_path, uninterrupted)


def test_a_full_disk_is_a_sentence_and_the_last_good_state_stays(
    tmp_path: Path, uninterrupted: dict[str, torch.Tensor]
) -> None:
    out, said = tmp_path / "run", tmp_path / "said"
    with started_command(said, *words(out)) as process:
        wait_for_iterations(process, out, 5)
        process.terminate()
        process.join()
    before = Logbook(out).reached()
    smaller = (out / "checkpoint.safetensors").stat().st_size // 2
    with started_command(said, *words(out), file_size=smaller) as process:
        process.join()
    assert process.exitcode == 1
    assert "What was saved before is whole" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert Logbook(out).reached() == before
    check_it_continues(out, uninterrupted)


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with started_command(tmp_path / "said", *words(tmp_path / "file" / "run")) as process:
        process.join()
    assert process.exitcode in (1, 2)
    assert "error: " in (tmp_path / "said").read_text()
    assert "Traceback" not in (tmp_path / "said").read_text()
