from __future__ import annotations

import os
from pathlib import Path

import huggingface_hub
import pytest
from typer.testing import CliRunner

from lors.cli import app
from lors.runs.folders import SET
from lors.system.errors import InputError

runner = CliRunner()


def test_export_writes_beside_the_set(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / SET).write_bytes((tiny_run / SET).read_bytes())
    result = runner.invoke(app, ["export", str(tmp_path / SET)])
    assert "add a licence" in result.output
    assert (tmp_path / "export" / "metadata.jsonl").is_file()


def test_export_says_that_features_have_no_images(features_run: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["export", str(features_run), "--out", str(tmp_path / "out")])
    assert "there are no images" in " ".join(result.output.split())


def test_overrides_say_where_the_data_is_now(embeddings_run: Path, tmp_path: Path) -> None:
    arguments = [str(embeddings_run), f"data.root={tmp_path}", "--out", str(tmp_path / "out")]
    result = runner.invoke(app, ["export", *arguments])
    assert isinstance(result.exception, InputError)
    assert str(tmp_path) in str(result.exception)


def test_push_needs_a_login(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    result = runner.invoke(app, ["push", os.fspath(tiny_run), "me/set"])
    assert isinstance(result.exception, InputError)
    assert "hf auth login" in str(result.exception)
