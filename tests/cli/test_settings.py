from __future__ import annotations

import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lors.cli import app
from lors.config.describing import sections
from lors.system.errors import InputError


def printed(*arguments: str, width: int = 80) -> str:
    """What ``lors settings`` prints on a terminal of some width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lors.cli.settings.console", Console(width=width))
        result = CliRunner().invoke(app, ["settings", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_it_explains_every_setting_within_80_columns() -> None:
    text = printed()
    for section in sections():
        assert all(f"  {s.name} = {s.default}" in text for s in section.settings)
    assert max(map(len, text.splitlines())) <= 80


def test_it_explains_the_options_of_one_matcher() -> None:
    text = printed("matching.hindsight")
    assert "matching.teacher_temperature = 0.05  (number > 0)" in text
    assert "matching.ridge" not in text


def test_it_explains_one_setting() -> None:
    assert printed("distill.budget").splitlines()[1:3] == [
        "  distill.budget = 100  (integer > 0)",
        "      storage, in plain pairs",
    ]


def test_a_misspelt_section_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'distill'"):
        printed("distil")


def test_it_imports_neither_torch_nor_numpy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "lors", "settings"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    imported = {line.split("|")[-1].strip().partition(".")[0] for line in told.splitlines()}
    assert imported.isdisjoint(["torch", "numpy", "timm", "transformers"])
