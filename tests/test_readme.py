"""The examples in the README run, and what it says of files is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app
from lors.compare import load_table, own_table
from lors.config import load_config

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^lors (.*?)(?:\s+#.*)?$", README, re.MULTILINE)


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_real_presets_and_settings(command: str) -> None:
    name, *arguments = shlex.split(command)
    assert runner_knows(name)
    if name == "distill":
        load_config(arguments[0], [a for a in arguments[1:] if "=" in a])
    if name == "select":
        load_config(arguments[1], [f"selection.kind={arguments[0]}"])
    if name == "compare" and "--table" in arguments:
        load_table(arguments[arguments.index("--table") + 1])
    elif name == "compare":
        own_table(arguments[0], arguments[arguments.index("--methods") + 1].split(","), [10])


def runner_knows(command: str) -> bool:
    return CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_every_path_it_names_exists() -> None:
    table = README.split("## Where to look")[1]
    for name in re.findall(r"`([a-z_/]+(?:\.py|/))`", table):
        assert (ROOT / "src/lors" / name).exists() or (ROOT / name).exists(), name
