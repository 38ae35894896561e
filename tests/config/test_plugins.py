"""Modules by name as plugins: where they are found, and what is said of those that fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lors.config import plugins
from lors.config.names import LOSSES
from lors.config.plugins import VARIABLE, add_plugins, load_plugins, named_plugins
from lors.system.errors import InputError

REGISTERS = """
from lors.config.registering import loss
@loss("{}")
def mine(logits, similarity): ...
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, and the process as it was after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, own = set(sys.modules), LOSSES.own()
    yield tmp_path
    os.environ.pop(VARIABLE, None)
    for name in set(sys.modules) - before:
        if name.startswith("plug"):
            del sys.modules[name]
    for name in set(LOSSES.own()) - set(own):
        LOSSES.remove(name)


def test_a_module_of_the_current_folder_is_found_here_and_by_processes_to_come(here: Path) -> None:
    (here / "plug_one.py").write_text(REGISTERS.format("of-one"))
    (here / "plug").mkdir()
    (here / "plug" / "inner.py").write_text(REGISTERS.format("of-inner"))
    add_plugins(["plug_one"])
    add_plugins(["plug.inner", "plug_one"])
    assert {"of-one", "of-inner"} <= set(LOSSES)
    assert os.environ[VARIABLE] == "plug_one,plug.inner"


def test_the_variable_counts_when_a_name_is_first_asked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "plug_one.py").write_text(REGISTERS.format("of-variable"))
    monkeypatch.setenv(VARIABLE, " plug_one, ")
    assert named_plugins() == ["plug_one"]
    assert "of-variable" not in LOSSES  # which was asked before
    monkeypatch.setattr(plugins, "_begun", [])
    assert "of-variable" in LOSSES
    load_plugins()
    assert "of-variable" in LOSSES


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("plug_not_there", None, "no module 'plug_not_there' for --plugin, neither in .* nor inst"),
        (
            "plug_one.py",
            "",
            r"takes the name of a module, as in --plugin my_module .*'plug_one.py'",
        ),
        ("plug_one", "import plug_nothing", r"No module named 'plug_nothing' \(.*one.py, line 1\)"),
        ("plug_one", "\nif:", r"SyntaxError: invalid syntax \(.*plug_one.py, line 2\)"),
        ("plug_one", "x = 1\nx / 0", r"ZeroDivisionError: division by zero \(.*line 2\)"),
        ("plug_one", REGISTERS.format("nce"), "cannot be used: the loss 'nce' exists in lors"),
        ("json", "", "is .*json.py and also .*json/__init__.py: rename yours"),
    ],
)
def test_a_module_that_cannot_be_a_plugin_gets_a_sentence(
    name: str, code: str | None, message: str, here: Path
) -> None:
    if code is not None:
        (here / f"{name.removesuffix('.py')}.py").write_text(code)
    with pytest.raises(InputError, match=message):
        add_plugins([name])
    assert named_plugins() == []


def test_a_variable_that_names_nothing_is_an_error_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "plug_not_there")
    monkeypatch.setattr(plugins, "_begun", [])
    for _ in range(2):
        with pytest.raises(InputError, match="no module 'plug_not_there'"):
            LOSSES.check("nce")
