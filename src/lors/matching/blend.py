"""Blending: an inner step on mixtures of pairs."""

from __future__ import annotations

import numpy as np
import torch

from lors.system.seeding import draw_seed
from lors.training import Batch

__all__ = ["blended"]


def blended(batch: Batch, concentration: float, generator: torch.Generator) -> Batch:
    """h ← βh + (1 - β)h_π with β ~ Beta(a, a) and a permutation π, the same on both sides.

    The similarity stays as it is. Against collapse: mixtures of pairs must be told apart too, which
    pairs that have all drawn near to each other are not.

    Paper: `Beyond Modality Collapse: Representation Blending for Multimodal Dataset Distillation
    <https://arxiv.org/abs/2505.14705>`_

    Args:
        batch: features and text embeddings of one inner step.
        concentration: a; 1 draws β evenly, more draws it nearer to 1/2.
        generator: draws β and π.
    """
    beta = np.random.default_rng(draw_seed(generator)).beta(concentration, concentration)
    order = torch.randperm(len(batch.inputs), generator=generator).to(batch.inputs.device)
    inputs, texts = (beta * part + (1 - beta) * part[order] for part in (batch.inputs, batch.texts))
    return Batch(inputs, texts, batch.similarity)
