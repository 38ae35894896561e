from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.selection import Candidates
from lors.selection.k_means import k_means
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]


def groups(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thirty pairs around three places, so far apart that there is no doubt; the group of each."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(3), 10)
    places = 100 * np.eye(3)
    images = places[group] + rng.standard_normal((30, 3))
    texts = places[group][:, ::-1] + rng.standard_normal((30, 3))
    return images.astype(np.float32), texts.astype(np.float32), group


class Drawn(np.random.Generator):
    """Draws what it was told to: here, a pair of each group to start from."""

    def __init__(self, pairs: list[int]) -> None:
        super().__init__(np.random.PCG64(0))
        self.pairs = pairs

    def choice(self, *args: object, **kwargs: object) -> np.ndarray:  # type: ignore[override]
        return np.array(self.pairs)


def test_clusters_are_the_groups_and_centroids_their_means() -> None:
    images, texts, group = groups()
    candidates = Candidates(images, texts, np.arange(30), chunk=7)
    found = k_means(candidates, 3, Drawn([3, 14, 25]))
    assert sorted(group[found.nearest]) == [0, 1, 2]
    for centroid, pair in zip(found.centroids, found.nearest, strict=True):
        members = np.flatnonzero(group == group[pair])
        joint = np.stack([candidates.row(int(member)) for member in members])
        np.testing.assert_allclose(centroid, joint.mean(0), atol=1e-4)
        distances = np.square(joint - joint.mean(0)).sum(1)
        assert pair == members[distances.argmin()]


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_any_pairs_are_those_of_the_plain_algorithm(seed: int) -> None:
    """Every distance by itself, until nothing changes; then each mean takes its nearest pair."""
    rng = np.random.default_rng(seed)
    images, texts = (rng.standard_normal((40, 3)).astype(np.float32) for _ in range(2))
    candidates = Candidates(images, texts, np.arange(40), chunk=7)
    found = k_means(candidates, 5, Drawn([0, 1, 2, 3, 4]))
    joint = np.stack([candidates.row(pair) for pair in range(40)]).astype(np.float64)
    means, before = joint[:5].copy(), np.full(40, -1)
    while True:
        apart = np.array([[np.square(pair - mean).sum() for mean in means] for pair in joint])
        members = apart.argmin(1)
        if (members == before).all():
            break
        before = members
        means = np.stack([joint[members == each].mean(0) for each in range(5)])
    np.testing.assert_allclose(found.centroids, means, atol=1e-4)
    assert found.members.tolist() == members.tolist()
    assert found.nearest.tolist() == apart.argmin(0).tolist()


def test_as_many_clusters_as_pairs_are_the_pairs() -> None:
    images, texts, _ = groups()
    found = k_means(Candidates(images, texts, np.arange(30)), 30, np.random.default_rng(0))
    assert sorted(found.nearest) == list(range(30))


def test_no_pair_stands_for_two_centroids_even_among_duplicates() -> None:
    images, texts = np.repeat(np.eye(2, dtype=np.float32), 5, 0), np.zeros((10, 1), np.float32)
    found = k_means(Candidates(images, texts, np.arange(10)), 6, np.random.default_rng(0))
    assert len(set(found.nearest)) == 6
    assert found.centroids.isfinite().all()


def test_more_clusters_than_pairs_are_refused() -> None:
    images, texts, _ = groups()
    with pytest.raises(InputError, match="31 of 30"):
        k_means(Candidates(images, texts, np.arange(30)), 31, np.random.default_rng(0))


def test_a_run_starts_from_real_pairs_or_in_features_from_centroids() -> None:
    real = setting_of(load_config("tiny", [*FEATURES, "distill.init=k-means"]))
    start, model = start_pairs(real), real.flat.model
    every = real.real["train"].normalised(np.arange(200), model)
    nearest = torch.cdist(start.images, every).min(1).values
    assert nearest.max() < 1e-2
    assert torch.equal(start.images, start_pairs(real).images)
    means = start_pairs(setting_of(load_config("tiny", [*FEATURES, "distill.init=centroids"])))
    assert torch.cdist(means.images, every).min(1).values.max() > 0.1
    least, most = every.min(0).values - 1e-4, every.max(0).values + 1e-4
    assert ((least <= means.images) & (means.images <= most)).all()  # as means must be


def test_pixels_cannot_be_centroids() -> None:
    with pytest.raises(InputError, match=r"distill\.init=k-means"):
        load_config("tiny", ["distill.init=centroids"])
    pairs = start_pairs(setting_of(load_config("tiny", ["distill.init=k-means"])))
    assert pairs.images.shape[1:] == (3, 16, 16)
