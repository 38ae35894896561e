from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lors.cli import app
from lors.config import load_config, methods, presets
from lors.config.catalogue import groups


def printed(*arguments: str, width: int = 80) -> str:
    """What ``lors presets`` prints on a terminal of some width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lors.cli.presets.console", Console(width=width))
        result = CliRunner().invoke(app, ["presets", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_list_has_one_line_for_each_preset_and_names_every_method() -> None:
    text = printed()
    for name in presets():
        if not name.endswith("-base"):
            family = re.sub(r"-\d{3}\b", r"-(\\d{3}|{[\\d,]+})", name)
            assert re.search(rf"^  {family} ", text, re.MULTILINE), name
    listed = re.split(r",?\s+", text.partition("Methods, ")[2])
    assert set(methods()) <= set(listed)
    assert [line for line in text.splitlines() if line in groups()] == list(groups())


def test_the_list_fits_80_columns_and_every_group_a_screen() -> None:
    narrow, wide = printed(), printed(width=200)
    assert max(map(len, narrow.splitlines())) <= 80
    assert max(group.count("\n") for group in narrow.split("\n\n")) < 24
    assert narrow.count("…") > wide.count("…") == 0
    start, own = narrow.split("\n\n")[:2]  # what newcomers read is whole
    assert "…" not in start + own


def test_the_list_has_the_recall_to_expect() -> None:
    line = next(line for line in printed("laptop").splitlines() if "flickr8k-hindsight-100" in line)
    expected = load_config("flickr8k-hindsight-100").expected
    assert expected is not None
    assert line.split()[1] == str(expected.recall) == "43.7"


def test_a_word_filters_the_list() -> None:
    lines = printed("hindsight").splitlines()
    head = lines[: next(i for i, line in enumerate(lines) if line.startswith("Hindsight:"))]
    named = [line.split()[0] for line in head if line.startswith("  ")]
    assert "features" in named  # whose description has the word
    assert {name for name in presets() if "hindsight" in name} | {"hindsight"} <= set(named)
    assert "demo" not in named
    whole = printed("paper")
    assert "  flickr30k-lors-200 " in whole
    assert "flickr8k" not in whole
    assert "  matching.teacher_temperature=0.05" in lines


def test_one_preset_is_shown_as_a_configuration(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(printed("features"), "utf-8")
    assert load_config(mine) == load_config("features")


def test_listing_imports_neither_torch_nor_numpy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "lors", "presets"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    imported = {line.split("|")[-1].strip().partition(".")[0] for line in told.splitlines()}
    assert "pydantic" in imported
    assert imported.isdisjoint(["torch", "numpy", "timm", "transformers"])
