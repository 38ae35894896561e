from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from lors.config import Config, load_config
from lors.config.methods import find_method
from lors.runs.pipeline import run
from lors.selection.k_means import Clusters
from lors.sets.distilled import DistilledSet
from lors.setting import setting_of
from lors.starts import Material, start_pairs
from lors.starts.prototypes import _means, _nearest_pairs, matched

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]


def test_no_other_matching_shares_more_pairs() -> None:
    rng = np.random.default_rng(0)
    images, captions = (torch.from_numpy(rng.integers(0, 5, 60)) for _ in range(2))

    def pairs(match: dict[int, int]) -> int:
        return sum(match[a] == b for a, b in zip(images.tolist(), captions.tolist(), strict=True))

    first, second = matched(images, captions, 5)
    assert sorted(second) == list(range(5))
    best = max(pairs(dict(enumerate(order))) for order in permutations(range(5)))
    assert pairs(dict(zip(first.tolist(), second.tolist(), strict=True))) == best


def test_a_prototype_is_the_mean_of_its_cluster() -> None:
    features = np.array([[1.0], [3.0], [10.0]])
    clusters = Clusters(torch.zeros(3, 1), np.array([0, 2, 1]), torch.tensor([0, 0, 1]))
    assert _means(features, clusters).tolist() == [[2.0], [10.0], [3.0]]  # the last is empty


def test_the_nearest_pair_takes_its_image_with_it() -> None:
    images, texts = torch.eye(2)[[0, 0, 1]], torch.tensor([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    centroids = torch.eye(2)[[0, 0]], torch.eye(2)[[0, 0]]
    found = _nearest_pairs(images, texts, torch.tensor([0, 0, 1]), centroids)
    assert [part.tolist() for part in found] == [[0, 1], [1, 2]]


def pds(*overrides: str) -> Config:
    return load_config("tiny", overrides, method=find_method("pds").name)


def test_pixels_start_as_real_pairs_none_of_them_twice() -> None:
    setting = setting_of(pds())
    real = start_pairs(setting)
    material = Material(setting)
    assert len(real) == material.count
    assert len(real.images.flatten(1).unique(dim=0)) == material.count


def test_a_method_that_learns_nothing_keeps_its_start_and_tunes_its_rates(tmp_path: Path) -> None:
    config = pds(*FEATURES, "evaluate.epochs=4", "evaluate.seeds=1", "evaluate.tried_rates=[0.3]")
    results = run(config, tmp_path / "run", references=False)
    made = DistilledSet.load(tmp_path / "run" / "distilled.safetensors")
    start = start_pairs(setting_of(config))
    torch.testing.assert_close(made.pairs.images, start.images, check_dtype=False)
    assert list(made.rates) == pytest.approx([0.3, 0.3])
    assert results.distilled.storage == config.distill.budget
    assert "rate 0.3" in results.distilled.note
