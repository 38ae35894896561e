from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from lors.config import Config
from lors.runs.folders import LOG, RESULTS, SET
from lors.runs.opened import Run
from lors.show.report import write_report
from lors.system.errors import InputError
from tests.runs.test_logbook import Listener


def test_a_run_opens_with_its_results_and_metrics(tiny_run: Path, tiny: Config) -> None:
    opened = Run(tiny_run)
    assert set(opened.results.rows) == {"full data", "random pairs", "distilled set"}
    assert len(opened.metrics) == tiny.distill.iterations


def test_the_start_is_what_the_run_began_with(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    assert len(opened.start) == len(opened.distilled)
    assert torch.equal(opened.start.texts, Run(tiny_run).start.texts)
    assert not torch.equal(opened.start.texts, opened.distilled.pairs.texts)


def test_a_set_alone_opens_without_results(tiny_run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((tiny_run / SET).read_bytes())
    opened = Run(alone)
    assert opened.results.rows == {}
    assert opened.metrics == []


def test_a_folder_without_a_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no distilled"):
        Run(tmp_path)


def test_damaged_results_are_named(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / SET).write_bytes((tiny_run / SET).read_bytes())
    (tmp_path / RESULTS).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        Run(tmp_path).results  # noqa: B018


def test_damaged_metrics_are_skipped_and_said(tiny_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(tiny_run, out)
    first, second, *rest = (tiny_run / LOG).read_bytes().splitlines(keepends=True)
    without_loss = json.dumps({"iteration": 2, "seconds": 0.5}).encode() + b"\n"
    damaged = [first, b"\0" * len(second) + b"\n", without_loss, *rest, b"null\n", b'{"iterat']
    (out / LOG).write_bytes(b"".join(damaged))
    listener = Listener()
    opened = Run(out, progress=listener)
    assert opened.metrics == [json.loads(line) for line in (first, without_loss, *rest)]
    assert [("2 damaged lines" in text) for text in listener.said] == [True]
    assert write_report(out).is_file()
