from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lors import artifacts
from lors.errors import InputError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.safetensors"
    artifacts.save(path, "thing", {"note": "é"}, {"x": torch.arange(6).view(2, 3)})
    return path


def test_round_trip(file: Path) -> None:
    header, tensors = artifacts.load(file, "thing")
    assert header["note"] == "é"
    assert torch.equal(tensors["x"], torch.arange(6).view(2, 3))


def test_another_kind_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="holds a thing, not a trajectory"):
        artifacts.load(file, "trajectory")


def test_a_newer_format_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "FORMAT", 0)
    with pytest.raises(InputError, match="upgrade lors"):
        artifacts.load(file, "thing")


@pytest.mark.parametrize("keep", [0, 4, 60, -1])
def test_a_truncated_file_is_refused(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged"):
        artifacts.load(file, "thing")


def test_foreign_and_absent_files_are_refused(tmp_path: Path) -> None:
    save_file({"x": torch.ones(1)}, tmp_path / "foreign.safetensors")
    with pytest.raises(InputError, match="not written by lors"):
        artifacts.load(tmp_path / "foreign.safetensors", "thing")
    with pytest.raises(InputError, match="no file"):
        artifacts.load(tmp_path / "absent.safetensors", "thing")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(file: Path) -> None:
    before = file.read_bytes()

    def fail() -> None:
        with artifacts.writing(file) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
