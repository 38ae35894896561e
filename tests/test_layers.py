"""The rooms of the house have one order: a module imports only from its own room and those below.

The order, from the ground up, is that of docs/about/architecture.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src" / "lors"
ROOMS = (
    *("system", "config", "files", "data", "encoders", "losses", "similarity", "training"),
    *("sets", "setting", "experts", "selection", "starts", "matching", "evaluation"),
    *("distillation", "trackers", "runs", "comparison", "show", "share", "uses", "testing", "cli"),
)
DOORS = ("__init__", "__main__")
"""Modules outside a room: what ``import lors`` gives, and what the command starts."""
MODULES = sorted(SOURCES.rglob("*.py"))


def room(module: str) -> str:
    """The room of a module by its dotted name below ``lors``."""
    return module.split(".")[0]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """The line and the module below ``lors`` of every import, also within functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "write imports in full"
            whole = node.module or ""
            if whole == "lors":
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif whole.startswith("lors."):
                yield node.lineno, whole.removeprefix("lors.")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("lors."):
                    yield node.lineno, alias.name.removeprefix("lors.")


def upward(path: str, source: str) -> list[str]:
    """The imports of a module that point up, or at no room."""
    own = room(path.removesuffix(".py").replace("/", "."))
    found = [(line, name) for line, name in imported(source) if room(name) != own]
    return [
        f"{path}:{line} imports {name}"
        for line, name in found
        if room(name) not in ROOMS or ROOMS.index(room(name)) > ROOMS.index(own)
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_a_module_is_in_a_room_and_imports_only_from_rooms_below(path: Path) -> None:
    name = str(path.relative_to(SOURCES))
    if name.removesuffix(".py") in DOORS:
        return
    assert room(name.removesuffix(".py").replace("/", ".")) in ROOMS
    assert upward(name, path.read_text("utf-8")) == []


def test_an_import_that_points_up_is_found() -> None:
    assert upward("data/pairs.py", "def f():\n    from lors.runs.pipeline import run") == [
        "data/pairs.py:2 imports runs.pipeline"
    ]
    assert upward("data/pairs.py", "from lors.data.decoded import fingerprint") == []
    assert upward("data/pairs.py", "from lors.system import ranks\nimport lors.config") == []
    assert upward("data/pairs.py", "import lors.workbench") == ["data/pairs.py:1 imports workbench"]


def test_the_largest_module_has_less_than_300_lines() -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {str(p.relative_to(SOURCES)): n for p, n in sizes.items() if n >= 300} == {}
