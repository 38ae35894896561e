"""What CONTRIBUTING.md, the workflows and the policy on versions say is true, and runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lors.cli import main
from lors.comparison import own_table
from lors.config.methods import remove_method
from lors.config.names import MATCHERS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
QUICK = ["distill.iterations=1", "evaluate.seeds=1", "evaluate.epochs=2", "--no-references"]
"""What the test adds to the command of the page, so that it takes seconds."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files that the page shows; what they register is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LORS_PLUGINS", "")
    files = re.findall(r"as `(\w+\.py)`.*?\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert [name for name, _ in files] == ["cross.py", "test_cross.py"]
    for name, code in files:
        (tmp_path / name).write_text(code, "utf-8")
    yield tmp_path
    MATCHERS.remove("cross")
    remove_method("cross")
    for name in ("cross", "test_cross"):
        sys.modules.pop(name, None)


def test_a_method_is_added_as_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distill, compare = (line.split() for line in re.findall(r"^lors (.*)$", PAGE, re.MULTILINE))
    monkeypatch.setattr(sys, "argv", ["lors", *distill, *QUICK])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert compare[0] == "compare"  # a whole comparison of this kind is in test_outside.py
    table = own_table(compare[1], compare[compare.index("--methods") + 1].split(","), [8])
    assert "Cross-covariance" in str(table)
    assert (folder / "runs/cross/distilled.safetensors").is_file()
    import test_cross  # type: ignore[import-not-found]  # the file of the page

    test_cross.test_cross_keeps_the_promises_of_a_matcher()


def test_files_and_targets_that_it_names_exist() -> None:
    named = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", PAGE)
    assert named
    missing = {name for name in named if "cross" not in name and not (ROOT / name).exists()}
    assert not missing
    assert targets(PAGE) <= made()


def targets(text: str) -> set[str]:
    """The targets of make that are run in a text."""
    runs = re.findall(r"(?:^|`)make ((?:[a-z]+\b *)+)", text, re.MULTILINE)
    return {name for run in runs for name in run.split()}


def made() -> set[str]:
    (line,) = re.findall(r"^\.PHONY: (.*)$", made_file(), re.MULTILINE)
    return set(line.split())


def test_workflows_run_the_targets_that_people_run() -> None:
    runs = {
        name: [
            step["run"] for job in flow["jobs"].values() for step in job["steps"] if "run" in step
        ]
        for name, flow in WORKFLOWS.items()
    }
    assert runs["test"] == ["make test", "make package"]
    assert runs["docs"] == ["make docs"]
    assert runs["release"][:2] == ["make test", "make package"]
    assert targets("\n".join(run for each in runs.values() for run in each)) <= made()


def test_the_same_pythons_are_declared_and_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    make = re.findall(
        r"(3\.\d+)-", re.findall(r"^VERSIONS \?= (.*)$", made_file(), re.MULTILINE)[0]
    )
    assert WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]["python"] == declared == make


def made_file() -> str:
    return (ROOT / "Makefile").read_text("utf-8")
