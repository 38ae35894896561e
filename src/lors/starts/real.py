"""Starts that need nothing but drawn real pairs."""

from __future__ import annotations

import numpy as np
import torch

from lors.starts.material import Material, Start

__all__ = ["noise", "real", "replicas"]


def real(material: Material) -> Start:
    """Real pairs, drawn at random: what the paper starts from."""
    images, captions = material.drawn
    return material.start(images[: material.count], captions[: material.count])


def replicas(material: Material) -> Start:
    """Half as many real pairs, each twice, to see whether false negatives are found."""
    images, captions = (np.repeat(half, 2)[: material.count] for half in material.drawn)
    return material.start(images, captions)


def noise(material: Material) -> Start:
    """Normal noise in the place of real pairs."""
    start, draw = real(material), material.generator
    images = torch.randn(start.images.shape, generator=draw).to(start.images)
    texts = torch.randn(start.texts.shape, generator=draw).to(start.texts)
    return Start(images, texts, start.real)
