"""Runs whose file operations fail, and whose process dies at them: the same bits, or a sentence.

``python -m benchmarks.faults --faults 5000`` tries thousands and prints a table. A failure names
the configuration and the faults.
"""

from __future__ import annotations

import errno
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lors.files import artifacts
from lors.runs.logbook import Logbook
from tests.faults.cases import (
    Case,
    Tally,
    disturb,
    draw_case,
    finish,
    plain_case,
    try_chain,
    write_embeddings,
)
from tests.faults.disk import Disk, Fault, Killed

CASES, CHAINS = 6, 4

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="pathlib before 3.11 keeps functions of os for itself"
)


@pytest.mark.parametrize("seed", range(CASES))
def test_a_disturbed_run_ends_with_the_same_bits_or_a_sentence(seed: int, tmp_path: Path) -> None:
    draw, tally = random.Random(seed), Tally()
    write_embeddings(tmp_path / "data")
    case = draw_case(draw, tmp_path / "whole", tmp_path / "data")
    for chain in range(CHAINS):
        try_chain(case, draw, tmp_path / f"chain-{chain}", tally)
    assert tally.chains.total() == CHAINS
    assert tally.faults.total() >= CHAINS


def test_a_run_killed_after_any_rename_lacks_nothing_in_the_end(case: Case, tmp_path: Path) -> None:
    renames = [place for place, kind in enumerate(case.cold) if kind == "rename"]
    assert len(renames) > 8
    for place in renames:
        fault, folder = Fault(place, "kill", "after"), tmp_path / str(place)
        assert disturb(case, folder, Disk(folder, fault)) == "killed"
        finish(case, folder, [fault])


def found(case: Case, folder: Path) -> str:
    """What is first found to be wrong with a run."""
    for chain in range(100):
        try:
            try_chain(case, random.Random(chain), folder / f"{chain}", Tally())
        except AssertionError as error:
            return str(error)
    return "nothing"


@pytest.fixture
def case(tmp_path: Path) -> Case:
    write_embeddings(tmp_path / "data")
    return plain_case(tmp_path / "whole", tmp_path / "data")


def test_it_is_found_if_files_are_written_in_place(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def writing(path: Path) -> Iterator[Path]:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path

    monkeypatch.setattr(artifacts, "writing", writing)
    assert found(case, tmp_path) != "nothing"


def test_it_is_found_if_files_are_not_synced(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_sync", lambda path: None)
    assert found(case, tmp_path) != "nothing"


def test_it_is_found_if_metrics_are_behind_their_checkpoint(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Logbook, "_sync_metrics", lambda book: None)
    assert "metrics.jsonl" in found(case, tmp_path)


def write_twice(path: Path) -> None:
    artifacts.write_text(path, "first")
    artifacts.write_text(path, "second")


def test_after_a_kill_at_any_operation_a_file_is_whole(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with disk.open():
        write_twice(tmp_path / "counted")
    found = set()
    for at in range(len(disk.operations)):
        for when in ("before", "middle", "after"):
            path = tmp_path / f"{at}-{when}"
            with pytest.raises(Killed), Disk(tmp_path, Fault(at, "kill", when)).open():
                write_twice(path)
            found.add(path.read_text() if path.exists() else None)
    assert found == {None, "first", "second"}
    assert list(tmp_path.glob(".*.tmp"))  # nobody tidies up behind a process that is dead


def test_half_a_write_reaches_the_disk_and_what_is_buffered_does_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    disk = Disk(tmp_path, Fault(1, "kill", "middle"))
    with pytest.raises(Killed), disk.open(), path.open("w") as file:
        file.write("12345678")
    assert disk.operations == ["create", "write"]
    assert path.read_text() == "1234"

    def write_and_go_on() -> None:
        with Disk(tmp_path, Fault(1, "kill")).open(), path.open("w") as file:
            file.write("12345678")
            (tmp_path / "folder").mkdir()

    with pytest.raises(Killed):
        write_and_go_on()
    assert path.read_text() == ""


def test_a_power_cut_leaves_zeros_of_what_was_not_synced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def append_and_go_on() -> None:
        with Disk(tmp_path, Fault(2, "power")).open():
            with path.open("a") as file:
                file.write("new")
            (tmp_path / "folder").mkdir()

    with pytest.raises(Killed):
        append_and_go_on()
    assert path.read_bytes() == b"old\0\0\0"


def test_a_disk_that_is_full_stays_so_and_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with Disk(tmp_path, Fault(0, "lasting", number=errno.ENOSPC)).open():
        for name in ("one", "two"):
            with pytest.raises(OSError, match="No space left"):
                (tmp_path / name).write_text("lost")
        assert (tmp_path / "file").read_text() == "kept"
