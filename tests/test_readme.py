"""The examples in the README run, and what it and the docs say of commands and files is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lors.cli import app
from lors.comparison import load_table, own_table
from lors.config import load_config
from lors.config.names import LOSSES, STARTS
from lors.runs.pipeline import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGES = [README, *(page.read_text("utf-8") for page in sorted((ROOT / "docs").rglob("*.md")))]
COMMANDS = sorted(
    {
        command.replace("$W", "").replace("$F", "")
        for page in PAGES
        for pattern in (
            r"^lors (.*?)(?:\s+#.*)?$",
            r"`lors (.*?)`",
            r"torchrun.* -m lors ([^`\n]*)",
        )
        for command in re.findall(pattern, page.replace("\\\n", ""), re.MULTILINE)
        if "…" not in command and not re.search(r"\b[A-Z]{3,}", command)  # a place holder
    }
)


QUICK = "pairs=20, rank=2, iterations=3, experts={'count': 1, 'epochs': 3}, evaluate={'seeds': 2}"


def write_embeddings(folder: Path) -> None:
    """Those of two sides that share what they say, under the names that the README has."""
    rng = np.random.default_rng(0)
    cause, maps = rng.normal(size=(300, 6)), rng.normal(size=(2, 6, 12))
    for side, values in zip(("images", "texts"), cause @ maps, strict=True):
        np.save(folder / f"{side}.npy", values[:200].astype(np.float32))
        np.save(folder / f"test_{side}.npy", values[200:].astype(np.float32))


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples_run(
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_embeddings(tmp_path)
    exec(compile(code.replace("pairs=100)", f"{QUICK})"), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    if "lors.evaluate" in code:
        assert printed.startswith("mean recall")
        assert (tmp_path / "small.safetensors").is_file()


def test_the_page_on_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of its code, in order."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    try:
        for code in blocks("docs/python.md"):
            exec(compile(code, "python.md", "exec"), names)
    finally:
        LOSSES.remove("squared")
        STARTS.remove("last")
    assert names["own"].loss is names["squared"]
    assert names["found"].mean("hindsight") > names["found"].mean("random")
    assert names["reached"].mean > 5 * 5.3  # of 100 pairs, chance finds (1 + 5 + 10) / 3 %
    assert "keeps its promises" in capsys.readouterr().out


def blocks(page: str) -> list[str]:
    """The code of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def test_the_page_on_own_loops_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 512 numbers each, as there; its networks learn more of the pairs than chance."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(300, 8))
    rows = {side: cause @ rng.normal(size=(8, 512)) for side in ("images", "texts")}
    for side, values in rows.items():
        np.save(tmp_path / f"{side}.npy", values.astype(np.float32))
    settings = [f"data.root={tmp_path}", "data.annotations={images: images.npy, texts: texts.npy}"]
    quick = ["distill.budget=40", "evaluate.seeds=1", "evaluate.tried_rates=[0.1]"]
    chosen = load_config("features", [*settings, *quick, "selection.kind=random"])
    run(chosen, tmp_path / "run", references=False)
    monkeypatch.chdir(tmp_path / "run")
    training, testing = blocks("docs/own-loop.md")
    names: dict[str, Any] = {"owner": torch.arange(300)}
    names |= {f"your_{side}": torch.from_numpy(v).float() for side, v in rows.items()}
    exec(compile(training, "own-loop.md", "exec"), names)
    exec(
        compile(testing.replace("lors.recall", "found = lors.recall"), "own-loop.md", "exec"), names
    )
    assert names["found"].mean > 50


def test_the_page_on_data_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/data.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for code, _, expected in re.findall(
        r"```python\n(.*?)```(\n\n```text\n(.*?)```)?", page, re.DOTALL
    ):
        exec(compile(code, "data.md", "exec"), names)
        printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
        assert printed == expected


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_real_presets_and_settings(command: str) -> None:
    name, *arguments = shlex.split(command)
    assert runner_knows(name)
    settings = [a for a in arguments if "=" in a]
    words = [a for a in arguments if a not in settings]
    if name in ("check", "distill", "encode", "experts") and words and words[0] != "config.yaml":
        load_config(words[0], settings)
    if name == "select" and words:
        load_config(words[1], [*settings, f"selection.kind={words[0]}"])
    if name == "compare" and "--table" in words:
        load_table(words[words.index("--table") + 1])
    elif name == "compare" and "--methods" in words and "list" not in words:
        own_table(words[0], words[words.index("--methods") + 1].split(","), [10])


def runner_knows(command: str) -> bool:
    return CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_every_path_it_names_exists() -> None:
    table = README.split("## Where to look")[1]
    for name in re.findall(r"`([a-z_/]+(?:\.py|/))`", table):
        assert (ROOT / "src/lors" / name).exists() or (ROOT / name).exists(), name
