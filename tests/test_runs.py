from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lors.config import Config
from lors.errors import InputError
from lors.folders import LOG, RESULTS, SET
from lors.runs import Run


def test_a_run_opens_with_its_results_and_metrics(tiny_run: Path, tiny: Config) -> None:
    opened = Run(tiny_run)
    assert set(opened.results["rows"]) == {"full data", "random pairs", "distilled set"}
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
    assert opened.results["rows"] == {}
    assert opened.metrics == []


def test_a_folder_without_a_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no distilled"):
        Run(tmp_path)


def test_damaged_results_are_named(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / SET).write_bytes((tiny_run / SET).read_bytes())
    (tmp_path / RESULTS).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        Run(tmp_path).results  # noqa: B018
    (tmp_path / LOG).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        Run(tmp_path).metrics  # noqa: B018
