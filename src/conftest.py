"""What the examples in docstrings begin with: a cache and a folder of their own, and some data.

``images`` and ``texts`` are two arrays, ``quick`` holds settings that keep a call short, and
``small`` is a set that ``lors.distill`` made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

collect_ignore = ["conftest.py"]  # which holds no examples

QUICK: dict[str, Any] = {
    "iterations": 2,
    "rank": 1,
    "evaluate_every": 0,
    "experts": {"count": 1, "epochs": 4},
    "evaluate": {"epochs": 4, "seeds": 1, "checks": 1},
}


@pytest.fixture(scope="session", autouse=True)
def example_data(
    tmp_path_factory: pytest.TempPathFactory, doctest_namespace: dict[str, Any]
) -> Iterator[None]:
    import lors

    rng = np.random.default_rng(0)
    shared = rng.normal(size=(200, 4))
    images, texts = (shared @ rng.normal(size=(4, size)) for size in (12, 10))
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.getbasetemp() / "lors home"  # that of tests/conftest.py
        patch.setenv("LORS_HOME", str(home))
        small = lors.distill(images, texts, pairs=9, progress=False, **QUICK)
        doctest_namespace.update(lors=lors, images=images, texts=texts, quick=QUICK, small=small)
        yield


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
