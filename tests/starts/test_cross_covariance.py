from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.selection import Candidates
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.starts.cross_covariance import singular_vectors
from lors.starts.directions import spanning_pairs

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]


def known(seed: int = 0) -> tuple[Candidates, np.ndarray, np.ndarray]:
    """Pairs with three latent causes of falling strength; the directions of these on each side."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.standard_normal((size, 3)))[0].T for size in (6, 5))
    latent = rng.standard_normal((400, 3))
    latent = np.linalg.qr(latent - latent.mean(0))[0] * [60, 40, 20]  # uncorrelated, mean zero
    images, texts = (latent @ directions for directions in (u, v))
    return Candidates(images, texts, np.arange(400), chunk=64), u, v


def test_singular_vectors_are_the_directions_of_the_latent_causes() -> None:
    candidates, u, v = known()
    left, right = singular_vectors(candidates, 10)
    assert len(left) == len(right) == 3  # the rank
    signs = np.sign((left.numpy() * u).sum(1))
    np.testing.assert_allclose(left.numpy() * signs[:, None], u, atol=1e-5)
    np.testing.assert_allclose(right.numpy() * signs[:, None], v, atol=1e-5)
    assert len(singular_vectors(candidates, 2)[0]) == 2


def test_spanning_pairs_are_the_extremes_of_every_direction() -> None:
    images = np.concatenate([np.eye(3), -np.eye(3)]).astype(np.float32)
    images = np.concatenate([images, 0.1 * np.ones((1, 3)), -0.1 * np.ones((1, 3))]).astype(
        np.float32
    )
    candidates = Candidates(images, images, np.arange(8))
    axes = torch.eye(3)[[2, 0]]
    assert spanning_pairs(candidates, axes, axes, 4).tolist() == [2, 5, 0, 3]
    again = spanning_pairs(candidates, axes[[0, 0]], axes[[0, 0]], 4)
    assert len(set(again)) == 4  # a pair that is taken is not taken again


def start(*settings: str, budget: int = 8) -> tuple[Setting, torch.Tensor, torch.Tensor]:
    given = ["distill.init=cross-covariance", "similarity.kind=identity", *settings]
    setting = setting_of(load_config("tiny", [*given, f"distill.budget={budget}"]))
    pairs = start_pairs(setting)
    return setting, pairs.images.detach(), pairs.texts.detach()


def real_covariance(setting: Setting) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Real images, each with the mean of its captions, and their cross-covariance."""
    real, model = setting.real["train"], setting.flat.model
    x = real.normalised(np.arange(len(real)), model)
    y = real.captions(np.arange(len(real.texts)), model)
    owner = torch.from_numpy(real.owner)
    y = torch.stack([y[owner == image].mean(0) for image in range(len(real))])
    x, y = x - x.mean(0), y - y.mean(0)
    return x, y, x.T @ y / len(x)


@pytest.mark.parametrize("standardise", ["true", "false"])
def test_in_features_pairs_are_both_signs_of_singular_vectors_as_long_as_real_features(
    standardise: str,
) -> None:
    setting, images, texts = start(*FEATURES, f"encoder.standardise={standardise}")
    x, y, covariance = real_covariance(setting)
    means = [(side[::2] + side[1::2]) / 2 for side in (images, texts)]
    for mean in means:  # the middle of the two signs is the mean of the data
        torch.testing.assert_close(mean, mean[:1].expand_as(mean), rtol=0, atol=1e-4)
    u, v = images - means[0].repeat_interleave(2, 0), texts - means[1].repeat_interleave(2, 0)
    torch.testing.assert_close(
        u.norm(dim=1), x.square().sum(1).mean().sqrt().expand(8), rtol=1e-3, atol=0
    )
    torch.testing.assert_close(
        v.norm(dim=1), y.square().sum(1).mean().sqrt().expand(8), rtol=1e-3, atol=0
    )
    sigma = torch.linalg.svdvals(covariance)[:4]
    along = torch.einsum("ki,ij,kj->k", u, covariance, v) / (u.norm(dim=1) * v.norm(dim=1))
    torch.testing.assert_close(along, sigma.repeat_interleave(2), rtol=1e-3, atol=1e-6)


def test_beyond_twice_the_rank_real_pairs_take_the_rest() -> None:
    setting, images, texts = start(*FEATURES, "encoder.text_dim=3", budget=10)
    every = setting.real["train"].normalised(np.arange(200), setting.flat.model)
    assert images.shape[0] == texts.shape[0] == 10
    distance = torch.cdist(images, every, compute_mode="donot_use_mm_for_euclid_dist").min(1).values
    assert (distance[:6] > 0.1).all()
    assert (distance[6:] < 1e-2).all()


def test_in_pixels_pairs_are_different_real_ones() -> None:
    setting, images, _ = start("encoder.scope=heads", "encoder.image_head=linear", budget=20)
    split = setting.pairs.splits["train"]
    every = setting.flat.model.normalise(torch.from_numpy(np.array(split.images)).to(images.device))
    distance = torch.cdist(images.flatten(1).double(), every.flatten(1).double())
    assert distance.min(1).values.max() < 1e-5
    assert len(distance.argmin(1).unique()) == 20
