"""Runs to draw: see also ``tiny_run``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.config import load_config
from lors.runs.pipeline import run
from lors.show.analysis.false_negatives import find_false_negatives, toy

QUICK = ["evaluate.seeds=1", "evaluate.epochs=2", "distill.iterations=2", "experts.count=1"]


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished false-negative experiment."""
    out = tmp_path_factory.mktemp("toy")
    find_false_negatives(toy("tiny", ["distill.budget=8", *QUICK]), out, [0])
    return out / "seed-0"


@pytest.fixture(scope="session")
def embeddings_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on given embeddings: neither pixels nor words."""
    folder = tmp_path_factory.mktemp("embeddings")
    rows = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    np.save(folder / "both.npy", rows)
    data = ["data.annotations.images=both.npy", "data.annotations.texts=both.npy"]
    small = ["distill.budget=20", "similarity.rank=1", "encoder.embed_dim=4"]
    settings = [f"data.root={folder}", *data, *small, *QUICK, "distill.evaluate_every=0"]
    run(load_config("features", settings), folder / "run", references=False)
    return folder / "run"


@pytest.fixture(scope="session")
def features_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in space features, whose images have real neighbours with pixels."""
    out = tmp_path_factory.mktemp("features") / "run"
    heads = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    small = ["encoder.embed_dim=8", "distill.evaluate_every=0"]
    run(load_config("tiny", [*heads, *small, *QUICK]), out, references=False)
    return out
