from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from lors.losses import bce
from lors.runs.opened import Run
from lors.show.analysis.anchors import embeddings
from lors.show.figures.anchors import make, plane
from lors.show.figures.canvas import style


def test_the_plane_keeps_cosines_and_the_widest_direction_across() -> None:
    image = torch.tensor([1.0, 0, 0])
    texts = F.normalize(torch.tensor([[1.0, 2, 0], [1, -2, 0], [1, 0, 0.1], [1, 0, -0.1]]))
    places = plane(image, texts)
    np.testing.assert_allclose(places[:, 0], texts[:, 0], rtol=1e-6)
    np.testing.assert_allclose(np.abs(places[:2, 1]), texts[:2, 1].abs(), rtol=1e-5)
    np.testing.assert_allclose(places[2:, 1], 0, atol=1e-6)


def test_weights_of_a_run_are_the_gradient_of_its_loss(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    with style():
        rows = make(opened).rows
    images, texts = embeddings(opened)
    images.requires_grad_()
    similarity = opened.distilled.pairs.similarity.matrix()
    bce(images @ texts.T / opened.config.encoder.temperature, similarity).backward()
    assert images.grad is not None
    weights = torch.tensor([row["w_bce"] for row in rows])
    torch.testing.assert_close(weights @ texts, images.grad[rows[0]["image"]], rtol=1e-3, atol=1e-5)
