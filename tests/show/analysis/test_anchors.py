from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lors.losses import LOSSES
from lors.runs.opened import Run
from lors.show.analysis.anchors import (
    anchor_weights,
    embeddings,
    most_similar_image,
)
from lors.system.errors import InputError

TEMPERATURE = 0.07


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("kind", ["identity", "learned", "all negative"])
def test_the_propositions_are_the_gradient_of_the_loss(
    loss: str, kind: str, rng: torch.Generator
) -> None:
    m, d, n = 6, 9, 2
    images, texts = (
        F.normalize(torch.randn(m, d, generator=rng, dtype=torch.float64)) for _ in range(2)
    )
    noise = 0.6 * torch.randn(m, m, generator=rng, dtype=torch.float64)
    similarity = torch.eye(m).double() + noise * (kind == "learned")
    if kind == "all negative":
        similarity = -noise.abs()
    images.requires_grad_()
    LOSSES[loss](images @ texts.T / TEMPERATURE, similarity).backward()
    assert images.grad is not None
    weights = anchor_weights(loss, images.detach(), texts, similarity, n, TEMPERATURE)
    torch.testing.assert_close(weights @ texts, images.grad[n])


def test_a_loss_that_is_not_there_has_no_weights() -> None:
    with pytest.raises(InputError, match="unknown loss"):
        anchor_weights("mse", torch.eye(2), torch.eye(2), torch.eye(2), 0, 1.0)


def test_a_false_negative_repels_until_its_similarity_is_learned() -> None:
    """Two equal pairs: with S = I the other's text pushes the image away, with S = 1 it pulls."""
    same = F.normalize(torch.ones(2, 3))
    for loss in ("bce", "wbce"):
        repelled = anchor_weights(loss, same, same, torch.eye(2), 0, TEMPERATURE)
        assert repelled[1] > 0
        attracted = anchor_weights(loss, same, same, torch.ones(2, 2), 0, TEMPERATURE)
        assert attracted[1] == attracted[0] <= 0


def test_embeddings_of_a_run_are_on_the_sphere(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    for side in embeddings(opened):
        torch.testing.assert_close(side.norm(dim=1), torch.ones(len(opened.distilled)))


def test_the_most_similar_image_is_not_fooled_by_the_diagonal() -> None:
    similarity = np.diag([5.0, 9.0, 1.0])
    similarity[2, 0] = 0.3
    assert most_similar_image(similarity) == 2
