"""Starts from k-means on joint features: pairs that stand for a group of similar ones each."""

from __future__ import annotations

import numpy as np

from lors.selection.k_means import k_means
from lors.starts.material import Material, Start

__all__ = ["centroids", "nearest_to_centroids"]


def nearest_to_centroids(material: Material) -> Start:
    """The real pair nearest to each centroid: AMD's start, and MDM's."""
    candidates, captions = material.candidates
    pairs = k_means(candidates, material.count, _rng(material)).nearest
    return material.start(pairs, captions[pairs])


def centroids(material: Material) -> Start:
    """The centroids themselves, which only features can be."""
    candidates, _ = material.candidates
    found = k_means(candidates, material.count, _rng(material)).centroids
    return Start(*material.encode(*candidates.sides(found.numpy())), None)


def _rng(material: Material) -> np.random.Generator:
    return np.random.default_rng(material.generator.initial_seed())
