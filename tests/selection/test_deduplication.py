from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.selection import Pool
from lors.selection.candidates import Candidates
from lors.selection.deduplication import by_deduplication, redundancy
from lors.selection.k_means import Rows, k_means
from lors.setting import setting_of
from tests.selection.test_candidates import joint, some_pairs


def test_in_one_cluster_redundancy_is_the_nearest_of_those_farther_out() -> None:
    pairs = some_pairs(20)
    found = redundancy(Candidates(*pairs), 1, np.random.default_rng(0))
    unit = joint(*pairs) / np.linalg.norm(joint(*pairs), axis=1, keepdims=True)
    order = np.argsort(unit @ unit.mean(0), kind="stable")
    assert found[order[0]] == -1
    for place, pair in enumerate(order[1:], 1):
        assert found[pair] == pytest.approx((unit[order[:place]] @ unit[pair]).max(), abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.8])
def test_what_is_dropped_is_what_the_paper_drops(epsilon: float) -> None:
    """In each cluster, pair by pair: whoever is nearly the same as one farther out goes."""
    pairs = some_pairs(40)
    found = redundancy(Candidates(*pairs), 4, np.random.default_rng(0))
    unit = joint(*pairs) / np.linalg.norm(joint(*pairs), axis=1, keepdims=True)
    clusters = k_means(Rows(torch.from_numpy(unit).float()), 4, np.random.default_rng(0))
    out = unit @ clusters.centroids.numpy().T
    dropped = [
        any(
            clusters.members[pair] == clusters.members[other]
            and out[other, clusters.members[pair]] < out[pair, clusters.members[pair]]
            and unit[pair] @ unit[other] > 1 - epsilon
            for other in range(40)
        )
        for pair in range(40)
    ]
    assert (found > 1 - epsilon).tolist() == dropped


@pytest.mark.parametrize("clusters", [1, 3])
def test_of_duplicates_one_is_not_redundant(clusters: int) -> None:
    images, texts, _ = some_pairs(10)
    rows = np.repeat(np.arange(10), 3)
    candidates = Candidates(images[rows], texts, rows)
    found = redundancy(candidates, clusters, np.random.default_rng(0)).reshape(10, 3)
    assert ((found > 1 - 1e-5).sum(1) == 2).all()


def test_what_is_drawn_is_of_the_less_redundant_half_and_all_can_be_asked_for() -> None:
    overrides = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    setting = setting_of(load_config("tiny", overrides))
    count = len(setting.real["train"])
    _, every = by_deduplication(Pool(setting), count)
    chosen, scores = by_deduplication(Pool(setting), 8)
    assert (scores <= np.median(every) + 1e-9).all()
    assert len(set(chosen)) == 8
