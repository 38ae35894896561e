"""Real photos, real captions and real weights, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from lors import DistilledSet, evaluate_set, load_config, run
from tests.conftest import SHARED

DATA, WEIGHTS = SHARED / "data" / "flickr8k", SHARED / "weights"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"needs Flickr8k in {DATA}")

PHOTOS = [f"data.root={DATA}", "data.pairs={train: 120, val: 40, test: 40}"]
FEW = [
    "experts={count: 1, epochs: 2, batch_size: 30}",
    "matching={steps: 2, batch_size: 5, max_start_epoch: 1}",
    "distill.budget=10",
    "distill.iterations=2",
    "distill.evaluate_every=0",
    "similarity.rank=2",
    "evaluate={seeds: 1, epochs: 4, checks: 2}",
]


def trunks(lite: int = 0) -> list[str]:
    pytest.importorskip("transformers")
    return [
        f"encoder.image=tf_efficientnet_lite{lite}",
        f"encoder.image_weights={WEIGHTS}/efficientnet_lite{lite}/model.safetensors",
        f"encoder.text=transformers:{WEIGHTS}/minilm_l6_v2",
        "encoder.image_size=64",
    ]


def test_the_papers_scope_runs_on_photos(tmp_path: Path) -> None:
    config = load_config("flickr8k-image-64", [*PHOTOS, *FEW])
    results = run(config, tmp_path / "run")
    assert set(results.rows) == {"full data", "random pairs", "distilled set"}
    assert DistilledSet.load(tmp_path / "run/distilled.safetensors").storage() <= 10


@pytest.mark.parametrize("preset", ["flickr8k-heads-100", "flickr8k-pixels-100"])
def test_frozen_pretrained_trunks_run_on_photos(preset: str, tmp_path: Path) -> None:
    run(load_config(preset, [*PHOTOS, *FEW, *trunks()]), tmp_path / "run", references=False)
    distilled = DistilledSet.load(tmp_path / "run" / "distilled.safetensors")
    features = (1280,) if preset == "flickr8k-heads-100" else (3, 64, 64)
    assert distilled.pairs.images.shape[1:] == features
    assert distilled.pairs.texts.shape[1:] == (384,)
    assert distilled.embed(["two dogs run over a field"]).shape == (1, 384)


def test_a_photo_set_moves_to_another_pretrained_trunk(tmp_path: Path) -> None:
    config = load_config("flickr8k-pixels-100", [*PHOTOS, *FEW, *trunks()])
    run(config, tmp_path / "run", references=False)
    row = evaluate_set(tmp_path / "run" / "distilled.safetensors", trunks(lite=2))
    assert row.networks == 1


def test_pretrained_features_carry_meaning(tmp_path: Path) -> None:
    """Heads trained on a few hundred photos retrieve far above chance."""
    settings = [
        *trunks(),
        f"data.root={DATA}",
        "data.pairs={train: 300, val: 40, test: 100}",
        *FEW[1:],
        "experts={count: 1, epochs: 8, batch_size: 50}",
    ]
    results = run(load_config("flickr8k-heads-100", settings), tmp_path / "run")
    chance = 100 * (1 + 5 + 10) / 3 / 100
    assert results.full_data.mean > 3 * chance
