"""The fuzzing itself: it finds, survives and repeats what it should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.toy import BUG, INPUTS

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="bounds are those of Linux"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    command = [sys.executable, "-m", "tests.fuzz.toy", str(tmp_path_factory.mktemp("toy"))]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_guided_by_coverage_it_finds_what_blind_damage_does_not(report: Any) -> None:
    assert BUG in report["once"]["kinds"]
    assert report["once"]["inputs"] == INPUTS
    assert BUG not in report["blind"]


def test_continued_twice_it_tries_the_same_inputs(report: Any) -> None:
    assert report["again"] == report["once"]


def test_an_input_that_ends_the_process_does_not_end_the_fuzzing(report: Any) -> None:
    kinds = report["mortal"]["kinds"]
    assert report["mortal"]["inputs"] == sum(kinds.values()) == 200
    assert kinds["SIGABRT below no code of ours"] >= 1
    assert kinds["loaded"] >= 100


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("hang", "hang in fuzz/toy.py read_deadly"),
        ("native", "hang below no code of ours"),
        ("abort", "SIGABRT below no code of ours"),
        ("exit", "SystemExit in fuzz/toy.py read_deadly"),
        ("memory", "MemoryError in fuzz/toy.py read_deadly"),
        ("long", "a sentence too long in fuzz/toy.py read_deadly"),
        ("escape", "unprintable in fuzz/toy.py read_deadly"),
        ("fine", "loaded"),
    ],
)
def test_every_bad_end_has_a_name(report: Any, data: str, kind: str) -> None:
    assert report["deadly"][data] == kind


def test_what_was_found_is_shortened(report: Any) -> None:
    assert bytes.fromhex(report["minimised"]) == b"\x80\xef\t"
