"""The public names of lors: each is documented with an example that runs, and typed."""

from __future__ import annotations

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lors

USER_CODE = Path(__file__).with_name("user_code.py")

CONSTRUCTORS = (
    "arrays",
    "dataset",
    "embeddings",
    "folder",
    "huggingface",
    "images",
    "karpathy",
    "webdataset",
)


def running_examples(thing: Any) -> list[doctest.Example]:
    """The examples of a docstring that pytest collects with its module and does not skip."""
    module = inspect.getmodule(thing)
    assert module is not None
    assert module.__name__.startswith("lors")
    finder = doctest.DocTestFinder(recurse=False)
    found = finder.find(thing, thing.__name__, module=module, globs={})
    examples = [example for test in found for example in test.examples]
    return [example for example in examples if not example.options.get(doctest.SKIP)]


@pytest.mark.parametrize("name", lors.__all__)
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    thing = lors if name == "__version__" else getattr(lors, name)
    examples = running_examples(thing)
    assert any(example.want or example.source for example in examples)
    if name == "__version__":
        assert any("lors.__version__" in example.source for example in examples)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_every_kind_of_pairs_has_an_example_that_runs(name: str) -> None:
    assert running_examples(getattr(lors.Pairs, name).__func__)


def test_the_typed_user_code_has_every_public_name() -> None:
    """It is one of the files that ``make lint`` gives to mypy --strict."""
    tree = ast.parse(USER_CODE.read_text("utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {f"lors.{name}" for name in lors.__all__} <= used
    assert (Path(lors.__file__).with_name("py.typed")).is_file()


def test_tab_completion_shows_every_public_name() -> None:
    code = "import lors; print(*dir(lors)); import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, torch_is_there = done.stdout.splitlines()
    assert set(lors.__all__) <= set(shown.split())
    assert torch_is_there == "False"
