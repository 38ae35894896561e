from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lors.config import load_config
from lors.evaluation.closed_form import Heads, Moments, closed_form_heads, fitted_heads, head_recall
from lors.setting import setting_of
from lors.system.seeding import generator


def some(pairs: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(pairs, 6, generator=generator("x")).double()
    mixed = x @ torch.randn(6, 4, generator=generator("mix")).double()
    return x + 1, mixed + torch.randn(pairs, 4, generator=generator("noise")).double() - 2


def moments(x: torch.Tensor, y: torch.Tensor) -> Moments:
    return Moments.of([(x[:25], y[:25]), (x[25:], y[25:])])


@pytest.mark.parametrize("side", [0, 1])
def test_of_full_rank_ridge_heads_are_the_solution_of_least_squares(side: int) -> None:
    pairs = some()
    kind = ("ridge, images to texts", "ridge, texts to images")[side]
    heads = fitted_heads(moments(*pairs), 4, 0.2, kind)
    x, y = (part - part.mean(0) for part in (pairs[side], pairs[1 - side]))
    gamma = 0.2 * x.square().mean()
    above = torch.cat([x / len(x) ** 0.5, gamma.sqrt() * torch.eye(x.shape[1]).to(x)])
    targets = torch.cat([y / len(x) ** 0.5, torch.zeros(x.shape[1], y.shape[1]).to(y)])
    expected = torch.linalg.lstsq(above, targets).solution
    product = heads.image @ heads.text.T
    torch.testing.assert_close(product if side == 0 else product.T, expected)


def test_canonical_heads_find_uncorrelated_directions_of_falling_correlation() -> None:
    pairs = some()
    heads = fitted_heads(moments(*pairs), 3, 1e-9, "CCA")
    u, v = ((part - part.mean(0)) @ w for part, w in zip(pairs, heads[:2], strict=True))
    correlations = np.corrcoef(torch.cat([u, v], 1).T.numpy())
    np.testing.assert_allclose(correlations[:3, :3], np.eye(3), atol=1e-6)
    between = correlations[:3, 3:]
    np.testing.assert_allclose(between, np.diag(between.diagonal()), atol=1e-6)
    assert (np.diff(between.diagonal()) < 0).all()
    bases = [np.linalg.qr((part - part.mean(0)).numpy())[0] for part in pairs]
    best = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)[:3]  # no pair has more
    np.testing.assert_allclose(between.diagonal(), best, atol=1e-6)


def test_heads_have_the_storage_of_the_budget_and_beat_what_is_drawn() -> None:
    overrides = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    setting = setting_of(load_config("tiny", overrides))
    heads, reached = closed_form_heads(setting, 8)
    assert heads.storage() == 8
    numbers = heads.image.numel() + heads.text.numel() + sum(len(mean) for mean in heads.means)
    assert numbers == 8 * sum(len(mean) for mean in heads.means)
    image, text = (torch.randn(w.shape, generator=generator(0)).to(w) for w in heads[:2])
    drawn = Heads(image, text, heads.means)
    assert reached.mean > 1.5 * head_recall(drawn, setting.real["test"]).mean


def test_recall_is_that_of_cosines() -> None:
    setting = setting_of(load_config("tiny", ["encoder.scope=heads", "encoder.image_head=linear"]))
    heads, reached = closed_form_heads(setting, 5)
    split = setting.real["test"]
    images, texts = (
        torch.from_numpy(np.array(part)).double() for part in (split.images, split.texts)
    )
    u = F.normalize((images - heads.means[0]) @ heads.image, dim=1)
    v = F.normalize((texts - heads.means[1]) @ heads.text, dim=1)
    own = (u[torch.from_numpy(split.owner)] * v).sum(1)
    beaten = (u @ v.T >= own).sum(0) == 1
    assert reached.ir1 == pytest.approx(100 * beaten.double().mean().item(), abs=0.5)
