"""Finished runs whose images are features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors import load_config
from lors.runs.pipeline import run

QUICK = [
    "distill.iterations=2",
    "distill.evaluate_every=0",
    "evaluate.epochs=2",
    "evaluate.seeds=1",
    "encoder.scope=heads",
    "encoder.space=features",
    "encoder.image_head=linear",
]


@pytest.fixture(scope="session")
def features_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in scenes as features."""
    out = tmp_path_factory.mktemp("runs") / "features"
    run(load_config("tiny", QUICK), out, references=False)
    return out


@pytest.fixture(scope="session")
def embeddings_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Given embeddings, without captions, in a folder that nobody should hear of."""
    root = tmp_path_factory.mktemp("secret")
    draw = np.random.default_rng(0)
    for name in ("images", "texts"):
        np.save(root / f"{name}.npy", draw.normal(size=(60, 8)).astype(np.float32))
    files = ["data.annotations.images=images.npy", f"data.annotations.texts={root}/texts.npy"]
    source = ["data.source=embeddings", "data.pairs={}", f"data.root={root}", *files]
    out = tmp_path_factory.mktemp("runs") / "embeddings"
    folder = f"experts.folder={root}/experts"
    small = ["distill.budget=12", "similarity.rank=1"]
    run(load_config("tiny", [*QUICK, *source, *small, folder]), out, references=False)
    return out
