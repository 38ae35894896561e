"""Shared parts of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lors.config import Config, load_config
from lors.workbench import Workbench

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session", autouse=True)
def lors_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Caches and experts of the tests live in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("LORS_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def tiny() -> Config:
    return load_config("tiny")


@pytest.fixture(scope="session")
def bench(tiny: Config) -> Workbench:
    """A workbench of the smallest preset, with its experts trained."""
    workbench = Workbench(tiny)
    workbench.experts()
    return workbench


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)
