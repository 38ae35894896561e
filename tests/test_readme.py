"""The examples in the README and the docs run, and what they say of commands and files is true."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from PIL import Image

from lors.cli import app
from lors.comparison import load_table, own_table
from lors.config import load_config
from lors.config.names import LOSSES, STARTS
from lors.runs.pipeline import run
from tests.published import low_rank, written

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8").replace("\\\n", "")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


def found(*patterns: str) -> list[str]:
    """What any page has of these, but for those with a place holder."""
    matches = {
        match.replace("$W", "").replace("$F", "")
        for page in PAGES.values()
        for pattern in patterns
        for match in re.findall(pattern, page, re.MULTILINE)
    }
    return sorted(m for m in matches if "…" not in m and not re.search(r"\b[A-Z]{3,}", m))


COMMANDS = found(r"^lors (.*?)(?:\s+#.*)?$", r"`lors ([^`]*)`", r"torchrun.* -m lors ([^`\n]*)")
SCRIPTS = found(r"(?:^|`)python ((?:-m )?(?:[a-z]+[./]).*?)(?:\s+#.*)?(?:`|$)")
TARGETS = found(r"(?:^|`)make ([a-z]+)(?=[`\s])")
GROUP: Any = typer.main.get_command(app)

THEIRS = "docs/guide/other-peoples-sets.md"
OWN_TESTS = ("docs/guide/python.md", "docs/guide/training-loop.md", "docs/guide/data.md", THEIRS)
"""Pages whose code has a test of its own, below; that of extending.md is test_extending.py."""
OTHERS = [
    name
    for name, page in PAGES.items()
    if "```python\n" in page and name not in (*OWN_TESTS, "docs/guide/extending.md")
]

QUICK = "pairs=20, rank=2, iterations=3, experts={'count': 1, 'epochs': 3}, evaluate={'seeds': 2}"


def write_embeddings(folder: Path) -> None:
    """Those of two sides that share what they say, under the names that the pages have."""
    rng = np.random.default_rng(0)
    cause, maps = rng.normal(size=(300, 6)), rng.normal(size=(2, 6, 12))
    for side, values in zip(("images", "texts"), cause @ maps, strict=True):
        np.save(folder / f"{side}.npy", values[:200].astype(np.float32))
        np.save(folder / f"test_{side}.npy", values[200:].astype(np.float32))


def blocks(page: str) -> list[str]:
    """The code of a page."""
    return re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL)


def test_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the README and every page without a test of its own, in a folder that has its files."""
    monkeypatch.chdir(tmp_path)
    write_embeddings(tmp_path)
    run(load_config("tiny", ["selection.kind=random"]), Path("runs/demo"), references=False)
    Path("runs/photos").symlink_to("demo")
    for name in ("a.jpg", "b.jpg"):
        Image.new("RGB", (40, 30), "red").save(name)
    for page in OTHERS:
        names: dict[str, Any] = {}
        for code in blocks(page):
            exec(compile(code.replace("pairs=100)", f"{QUICK})"), page, "exec"), names)
    assert "README.md" in OTHERS
    assert "mean recall" in capsys.readouterr().out
    assert (tmp_path / "small.safetensors").is_file()
    assert (tmp_path / "retriever.safetensors").is_file()


def test_the_page_on_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of its code, in order."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    before = [(registry, set(registry)) for registry in (LOSSES, STARTS)]
    try:
        for code in blocks("docs/guide/python.md"):
            exec(compile(code, "python.md", "exec"), names)
        assert names["own"].loss is names["squared"]
    finally:
        for registry, own in before:
            for name in set(registry) - own:
                registry.remove(name)
    assert names["found"].mean("hindsight") > names["found"].mean("random")
    assert names["reached"].mean > 5 * 5.3  # of 100 pairs, chance finds (1 + 5 + 10) / 3 %
    assert "keeps its promises" in capsys.readouterr().out


def test_the_page_on_other_peoples_sets_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a small set of made-up numbers and the built-in scenes."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "distilled_3000.pt", low_rank())
    (code,) = blocks(THEIRS)
    like, data = "flickr30k-lors-100-published", "data.root=flickr30k"
    assert like in code
    assert data in code
    exec(code.replace(like, "tiny").replace(data, "encoder.text_dim=12"), {})
    assert "distilled set, best on test (legacy)" in capsys.readouterr().out


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
    training, testing = blocks("docs/guide/training-loop.md")
    names: dict[str, Any] = {"owner": torch.arange(300)}
    names |= {f"your_{side}": torch.from_numpy(v).float() for side, v in rows.items()}
    exec(compile(training, "training-loop.md", "exec"), names)
    exec(
        compile(testing.replace("lors.recall", "found = lors.recall"), "training-loop.md", "exec"),
        names,
    )
    assert names["found"].mean > 50


def test_the_page_on_data_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGES["docs/guide/data.md"]
    names: dict[str, Any] = {}
    for code, _, expected in re.findall(
        r"```python\n(.*?)```(\n\n```text\n(.*?)```)?", page, re.DOTALL
    ):
        exec(compile(code, "data.md", "exec"), names)
        printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
        assert printed == expected


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_real_presets_options_and_settings(command: str) -> None:
    name, *arguments = shlex.split(command)
    if name.startswith("-"):
        return
    entry = GROUP.commands[name]
    if name in ("analyze", "use") and arguments:
        name, *arguments = arguments
        entry = entry.commands[name]
    known = {flag for each in entry.params for flag in (*each.opts, *each.secondary_opts)}
    assert {a.partition("=")[0] for a in arguments if a.startswith("--")} <= {
        *known,
        "--help",
        "--plugin",
    }
    settings = [a for a in arguments if "=" in a and not a.startswith("--")]
    words = [a for a in arguments if a not in settings]
    if name in ("check", "distill", "encode", "experts", "plan") and words[:1] != ["config.yaml"]:
        load_config(words[0] if words else "demo", settings)
    if name in ("evaluate", "export", "report"):
        load_config("demo", settings)
    if name == "select" and words:
        load_config(words[1], [*settings, f"selection.kind={words[0]}"])
    if name == "compare" and "--table" in words:
        scale = words[words.index("--scale") + 1] if "--scale" in words else "full"
        load_table(words[words.index("--table") + 1], scale)
    elif name == "compare" and "--methods" in words and "list" not in words:
        own_table(words[0], words[words.index("--methods") + 1].split(","), [10])


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_exist_and_have_the_options_that_are_named(script: str) -> None:
    module, *arguments = shlex.split(script.removeprefix("-m "))
    if script.startswith("-m "):
        assert find_spec(module)
        return
    text = (ROOT / module).read_text("utf-8")
    assert all(a in text for a in arguments if a.startswith("--"))
    load_config("demo", [a for a in arguments if re.fullmatch(r"[a-z_]+\.[a-z_]+=.*", a)])


def test_make_has_the_targets_that_are_named() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert {"demo", "docs", "test"} <= set(TARGETS)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in TARGETS)


def test_the_readme_is_short_and_its_links_and_numbers_are_true() -> None:
    assert len(README.split()) < 700
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
    measured = (ROOT / "docs/results/leaderboard.md").read_text("utf-8")
    table = README.partition("## What it reaches")[2].partition("\n\n[")[0]
    numbers = re.findall(r"\d+\.\d(?: ± \d\.\d)?", table)
    assert len(numbers) == 10
    assert not [n for n in numbers if n != "0.5" and n not in measured]
