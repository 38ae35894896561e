"""The page on extending lors runs as it is, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lors.config.methods import remove_method
from lors.config.registering import REGISTRIES
from lors.testing import check_loss, check_matcher

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "guide" / "extending.md").read_text("utf-8")


@pytest.fixture
def names(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What the page defines; what it registers is gone afterwards."""
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    before = {kind: registry.own() for kind, registry in REGISTRIES.items()}
    found: dict[str, Any] = {"__name__": "page"}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "extending.md", "exec"), found)
    yield found
    for kind, registry in REGISTRIES.items():
        for name in set(registry.own()) - set(before[kind]):
            registry.remove(name)
    remove_method("mine")


def test_the_page_runs_and_says_what_is_true(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    names["test_squared"]()
    assert names["results"].distilled.pairs == 7
    assert (Path("runs/mine") / "distilled.safetensors").is_file()
    assert f"```\n{check_loss(names['squared'])}\n```" in PAGE
    table = PAGE.partition("What `check_matcher` promises")[2].partition("##")[0]
    for promise in check_matcher(names["Mine"]).promises:
        name = promise.name
        assert (name.removeprefix("works in ") if "/" in name else f"| {name} |") in table
