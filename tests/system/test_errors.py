from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from lors.config import load_config
from lors.files.headers import restoring
from lors.sets.distilled import DistilledSet
from lors.setting.resolve import resolve
from lors.system.errors import (
    InputError,
    LorsError,
    explained,
    out_of_memory,
    shortened,
    suggestion,
)
from lors.system.memory import check_fits

LONG = "x" * 5000
OLD = Path(__file__).parents[1] / "fixtures" / "format-1" / "distilled.safetensors"


def test_messages_are_cut_in_their_middle() -> None:
    sentence = f"cannot read {LONG!r}: give another"
    message = str(InputError(sentence))
    assert len(message) == 1200
    assert message.startswith("cannot read 'xxx")
    assert message.endswith("xxx': give another")
    assert str(LorsError("short")) == "short"
    assert shortened("abc", 3) == "abc"
    assert [len(shortened(LONG, length)) for length in (20, 21)] == [20, 21]


def test_a_suggestion_for_an_endless_name_is_found_at_once() -> None:
    assert suggestion("lowrank" * 10**6, ["lowrank"] * 1000).startswith("; known")


def allocate_with_torch() -> None:
    torch.empty(2**60, dtype=torch.uint8)


def allocate_with_numpy() -> None:
    np.empty(2**60, np.uint8)


@pytest.mark.parametrize("allocate", [allocate_with_torch, allocate_with_numpy])
def test_no_memory_is_told_apart_from_damage(allocate: object) -> None:
    assert callable(allocate)
    with pytest.raises((RuntimeError, MemoryError)) as caught, restoring("file"):
        allocate()
    assert out_of_memory(caught.value)
    assert "lower matching.batch_size" in str(explained(caught.value))


def test_what_the_machine_refuses_is_a_sentence_and_a_bug_is_none() -> None:
    refused = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    assert "out of memory" in str(explained(refused))
    full = explained(OSError(errno.ENOSPC, "No space left on device", "/a/file"))
    assert full is not None
    assert full.startswith("No space left on device (/a/file). What was saved before is whole")
    long = explained(OSError(errno.ENAMETOOLONG, "File name too long", LONG))
    assert long is not None
    assert long.endswith("give a shorter path")
    assert len(long) < 300
    assert explained(RuntimeError("a bug")) is None


def test_files_larger_than_memory_are_refused() -> None:
    check_fits(1000, "it")
    with pytest.raises(InputError, match=r"it has 1,048,576\.0 GiB, and of memory"):
        check_fits(2**50, "it")


def sparse_set(path: Path) -> None:
    """A set whose images are 2 TiB, of which the disk holds a hole."""
    with safe_open(OLD, "pt") as handle:
        about = handle.metadata()
    images = {"dtype": "F32", "shape": [2**39], "data_offsets": [0, 2**41]}
    text = json.dumps({"__metadata__": about, "images": images}).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 2**41)


def test_a_sparse_set_is_refused_before_it_is_read(tmp_path: Path) -> None:
    sparse_set(tmp_path / "set.safetensors")
    with pytest.raises(InputError, match=r"set\.safetensors' has 2,048\.0 GiB"):
        DistilledSet.load(tmp_path / "set.safetensors")


def test_a_command_that_runs_out_of_memory_says_what_to_lower() -> None:
    code = (
        "from lors.cli import app, main\n"
        "@app.command()\n"
        "def fill() -> None: bytearray(2**60)\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "fill"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "out of memory: lower matching.batch_size" in " ".join(done.stderr.split())


def test_too_little_memory_to_load_libraries_is_a_sentence() -> None:
    code = (
        "import resource, lors.cli\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_000_000_000,) * 2)\n"
        "lors.cli.main()"
    )
    command = [sys.executable, "-c", code, "distill", "tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "out of memory while loading libraries" in " ".join(done.stderr.split())


def test_a_library_that_is_missing_is_not_taken_for_memory() -> None:
    forbidden = "x.so: failed to map segment from shared object: Operation not permitted"
    assert explained(ImportError(forbidden)) is None
    assert explained(ImportError("No module named 'x'")) is None


@pytest.mark.parametrize(
    "setting",
    ["data.root", "experts.folder", "similarity.values", "encoder.image_weights"],
)
@pytest.mark.parametrize("path", [LONG, "x/" * 2500, "~" + LONG])
def test_settings_refuse_paths_of_5000_characters(setting: str, path: str) -> None:
    with pytest.raises(InputError, match="longer than any") as caught:
        load_config("demo", [f"{setting}={path}"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "setting",
    [
        "data.source",
        "encoder.image",
        "encoder.text",
        "encoder.image_head",
        "loss",
        "device",
        "matching.kind",
        "distill.init",
        "similarity.kind",
        "scorer",
        "trackers",
    ],
)
def test_names_of_5000_characters_are_refused(setting: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(load_config("demo", [f"{setting}={LONG}"]))
    assert len(str(caught.value)) <= 1200


@pytest.mark.parametrize("section", ["experts", "matching", "evaluate"])
def test_batches_of_one_pair_are_refused_where_the_loss_compares_pairs(section: str) -> None:
    overrides = ["similarity.kind=identity", f"{section}.batch_size=1"]
    for loss in ("nce", "ence"):
        with pytest.raises(InputError, match=rf"{section}\.batch_size=1: .* set 2 or more"):
            resolve(load_config("tiny", [*overrides, f"loss={loss}"]))
    if section != "experts":  # whose loss is always nce
        resolve(load_config("tiny", [*overrides, "loss=wbce"]))
