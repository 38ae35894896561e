"""The doctor finds what is wrong with the caches and the runs, and removes what is safe."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lors.cli import app
from lors.experts import Snapshot, TrajectoryStore
from lors.files.artifacts import save
from lors.files.cache import cached_array
from lors.runs.doctor import Finding, examine, remove
from lors.system.locks import locked
from lors.system.progress import Silent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an array, an expert, and a text trunk."""
    home = tmp_path / "home"
    monkeypatch.setenv("LORS_HOME", str(home))
    cached_array(home / "images" / "a.npy", lambda: np.zeros((2, 3)), Silent())
    store = TrajectoryStore(home / "experts" / "b", {})
    store.add(0, [Snapshot(torch.zeros(3), np.zeros(1, bool)) for _ in range(2)])
    save(home / "texts" / "lsa-c.safetensors", "text trunk", {"terms": ["a"]}, {})
    return home


def found(what: str, runs: tuple[Path, ...] = ()) -> Finding:
    (finding,) = (finding for finding in examine(runs) if finding.what == what)
    return finding


def test_a_home_in_order_is_well(home: Path) -> None:
    findings = examine()
    assert [f for f in findings if not f.well and "free space" not in f.what] == []
    assert found("caches: locks").detail == "work"
    assert found("caches: decoded images").detail.endswith("files: 1")
    assert not list(home.glob(".doctor*"))


def test_leftovers_are_found_and_removed_but_not_under_a_process(home: Path) -> None:
    left = [
        home / "images" / ".a.npy.77.tmp",
        home / "experts" / "b" / ".expert-001.safetensors.77.tmp",
        home / "experts" / "b" / "unfinished-000",
    ]
    left[2].mkdir()
    for path in left[:2]:
        path.write_bytes(b"half")
    what = "caches: leftovers of killed processes"
    assert set(found(what).removable) == set(left)
    with locked(home / "images" / ".a.npy.lock"), locked(home / "experts/b/.expert-000.lock"):
        assert set(found(what).removable) == {left[1]}
        assert remove([Finding(what, "", False, tuple(left))]) == [left[1]]
    assert CliRunner().invoke(app, ["doctor", "--clean"]).exit_code == 0
    assert not any(path.exists() for path in left)
    assert (home / "experts" / "b" / "expert-000.safetensors").exists()


@pytest.mark.parametrize(
    "name", ["images/a.npy", "experts/b/expert-000.safetensors", "texts/lsa-c.safetensors"]
)
def test_a_damaged_cache_is_found_and_removed(home: Path, name: str) -> None:
    path = home / name
    content = bytearray(path.read_bytes())
    if path.suffix == ".npy":
        del content[-1]
    else:
        content[-1] ^= 1
    path.write_bytes(content)
    answer = CliRunner().invoke(app, ["doctor"])
    assert answer.exit_code == 1
    assert "lors doctor --clean" in answer.output
    assert found("caches: damaged files").removable == (path,)
    assert CliRunner().invoke(app, ["doctor", "--clean"]).exit_code == 0
    assert not path.exists()


def test_begun_experts_are_kept(home: Path) -> None:
    path = home / "experts" / "b" / "unfinished-003" / "epoch-0000.safetensors"
    save(path, "snapshot", {"origin": {}}, {"theta": torch.zeros(3)})
    assert found("caches: begun experts").detail.startswith("1, ")
    assert remove(examine()) == []
    assert path.exists()


def test_a_run_is_checked_and_its_files_are_kept(
    home: Path, tiny_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    assert found(f"{run}: damaged files", (run,)).detail == "none; 1 sets are whole"
    content = bytearray((run / "checkpoint.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "checkpoint.safetensors").write_bytes(content)
    (run / "results.json").write_text("{")
    (run / ".config.yaml.77.tmp").write_text("half")
    assert found(f"{run}: damaged files", (run,)).detail == "checkpoint.safetensors, results.json"
    answer = CliRunner().invoke(app, ["doctor", str(run), "--clean"])
    assert answer.exit_code == 1  # what is damaged in a run is the user's to judge
    assert (run / "checkpoint.safetensors").exists()
    assert not (run / ".config.yaml.77.tmp").exists()
    assert CliRunner().invoke(app, ["doctor", str(tmp_path)]).exit_code == 1


def test_a_home_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,ro", "tmpfs", str(tmp_path)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    try:
        assert not found("caches: writing").well
        assert not found("caches: free space").well
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
