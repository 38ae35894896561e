from __future__ import annotations

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.data.anything import as_pairs
from lors.selection import Candidates
from lors.setting import Setting, resolve, setting_of
from lors.starts import start_pairs
from lors.starts.canonical import (
    Directions,
    canonical_directions,
    canonical_texts,
    covariances_of,
    mixtures,
)

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]


def known() -> tuple[Candidates, np.ndarray, np.ndarray]:
    """Two causes that both sides share, drowned on each side by one of its own.

    Returns:
        The pairs, and the direction of each cause on each side, the strongest correlation first.
    """
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((5000, 6))
    causes = np.linalg.qr(causes - causes.mean(0))[0] * 5000**0.5
    shared, noise = causes[:, :2], causes[:, 2:4]
    u, v = (np.linalg.qr(rng.standard_normal((size, 3)))[0].T for size in (6, 5))
    images = np.c_[shared, 9 * causes[:, 4]] @ u
    texts = np.c_[shared + [0.3, 0.9] * noise, 9 * causes[:, 5]] @ v
    return Candidates(images, texts, np.arange(5000), chunk=640), u[:2], v[:2]


def test_the_directions_are_those_in_which_both_sides_agree() -> None:
    candidates, u, v = known()
    a, b, _ = canonical_directions(covariances_of(candidates, 1e-6))
    a, b = a[:2], b[:2]
    for found, expected in ((a, u), (b, v)):
        cosines = (found.double().numpy() * expected).sum(1)
        np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-3)
    assert len(canonical_directions(covariances_of(candidates)).image) <= 5


def test_variates_are_correlated_in_falling_order() -> None:
    candidates, *_ = known()
    joint = torch.cat([block for _, block in candidates.blocks()])
    a, b, _ = canonical_directions(covariances_of(candidates, 1e-6))
    a, b = a[:2], b[:2]
    x, y = joint[:, :6] @ a.T, joint[:, 6:] @ b.T
    correlations = [np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(2)]
    expected = [1 / (1 + 0.3**2) ** 0.5, 1 / (1 + 0.9**2) ** 0.5]
    np.testing.assert_allclose(correlations, expected, atol=1e-3)


def test_a_stronger_ridge_prefers_what_varies_most() -> None:
    """The first cause is the same on both sides; the second is larger, but noisy in the texts."""
    causes = np.linalg.qr(np.random.default_rng(0).standard_normal((400, 3)))[0] * 20
    images = causes[:, :2] * [1, 5]
    candidates = Candidates(images, images + 5 * causes[:, 2:] * [0, 1], np.arange(400))
    for ridge, axis in ((1e-6, 0), (1e3, 1)):
        direction = canonical_directions(covariances_of(candidates, ridge)).image[0]
        assert direction.abs()[axis] > 0.99


def test_a_canonical_text_points_as_far_along_each_direction_as_its_image() -> None:
    candidates, u, v = known()
    joint = torch.cat([block for _, block in candidates.blocks()])[:50].double()
    texts = canonical_texts(covariances_of(candidates, 1e-4), joint[:, :6]).double().numpy()
    # C_yy is diagonal along v, with variances 1 + 0.3² and 1 + 0.9² of the shared causes.
    expected = (joint.numpy()[:, :6] @ u.T / [1 + 0.3**2, 1 + 0.9**2]) @ v
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(texts, expected, atol=2e-2)


def test_photos_of_frozen_trunks_get_canonical_texts_and_others_keep_their_captions() -> None:
    given = ["distill.init=canonical", "similarity.kind=identity", "distill.budget=6"]
    for scope in ("heads", "image"):
        head = ["encoder.image_head=linear"] if scope == "heads" else []
        setting = setting_of(load_config("tiny", [*given, f"encoder.scope={scope}", *head]))
        real, model = setting.real["train"], setting.flat.model
        captions = real.captions(np.arange(len(real.texts)), model)
        near = torch.cdist(start_pairs(setting).texts.detach(), captions).min(1).values
        assert (near.max() < 1e-4) == (scope == "image")


def test_a_set_starts_with_both_signs_of_every_direction() -> None:
    given = ["distill.init=canonical", "similarity.kind=identity", "distill.budget=6"]
    setting = setting_of(load_config("tiny", [*given, *FEATURES]))
    pairs = start_pairs(setting)
    for part in (pairs.images, pairs.texts):
        torch.testing.assert_close(part[0::2], -part[1::2], rtol=1e-4, atol=1e-4)
        assert torch.linalg.matrix_rank(part) == 3
    assert (
        len(set(start_pairs(setting_of(load_config("tiny", given))).images[:, 0, 0, 0].tolist()))
        > 1
    )


def test_a_side_that_is_the_same_for_all_pairs_gives_no_direction() -> None:
    images = np.random.default_rng(0).standard_normal((20, 4))
    candidates = Candidates(images, np.ones((20, 3)), np.arange(20))
    assert [len(side) for side in canonical_directions(covariances_of(candidates))] == [0, 0, 0]


def test_as_many_directions_matter_as_are_equally_strong() -> None:
    strength = torch.tensor([0.5, 0.5, 0.5, 1e-4])
    assert Directions(torch.eye(4), torch.eye(4), strength).number() == pytest.approx(3, rel=1e-3)


def test_both_sides_of_a_mixture_point_the_same_way() -> None:
    directions = Directions(torch.eye(5), torch.eye(5).roll(1, 0), torch.full((5,), 0.5))
    joint = mixtures(directions, 3, torch.Generator().manual_seed(0))
    image, text = joint.split(5, 1)
    torch.testing.assert_close(image.roll(-1, 1), text)
    torch.testing.assert_close(image.norm(dim=1), torch.ones(3))
    assert torch.linalg.matrix_rank(image) == 3


def test_fewer_pairs_than_directions_are_mixtures() -> None:
    """Single directions come with both signs, so that a pair and the next add up to zero."""
    rng = np.random.default_rng(0)
    cause, maps = rng.normal(size=(400, 12)), rng.normal(size=(2, 12, 24))
    real = as_pairs(*(cause @ maps).astype(np.float32))
    for budget, single in ((4, False), (30, True)):
        config = load_config("features", {"distill.budget": budget, "similarity.kind": "identity"})
        images = start_pairs(Setting(resolve(config), pairs=real)).images.detach()
        assert torch.allclose(images[0], -images[1], atol=1e-4) is single
