from __future__ import annotations

from pathlib import Path

import pytest

from lors.config import load_config
from lors.runs.pipeline import run
from tests.conftest import FEATURES


@pytest.fixture(scope="session")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many real pairs of scenes, as features, as half of the training split has."""
    out = tmp_path_factory.mktemp("chosen")
    half = ["selection.kind=random", "distill.budget=100", "evaluate.tried_rates=[0.1]"]
    run(load_config("tiny", [*FEATURES, *half]), out, references=False)
    return out
