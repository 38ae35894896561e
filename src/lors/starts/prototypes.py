"""Matched prototypes: clusters of images and of captions that share most pairs."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from lors.data.shards import Features
from lors.experts import joint_features, scorer_embeddings
from lors.selection.k_means import Clusters, Rows, k_means
from lors.starts.material import Material, Start

__all__ = ["matched", "prototypes"]


def matched(images: Tensor, captions: Tensor, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of images matched with clusters of captions, so that most pairs lie in a match.

    >>> images, captions = torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0])
    >>> [clusters.tolist() for clusters in matched(images, captions, 2)]
    [[0, 1], [1, 0]]

    Args:
        images: the cluster of each pair's image. Shape: (C,)
        captions: the cluster of each pair's caption. Shape: (C,)
        count: N, how many clusters there are on each side.

    Returns:
        The image cluster and the caption cluster of each match. Shapes: (N,), (N,)
    """
    shared = torch.bincount(images * count + captions, minlength=count**2).view(count, count)
    found = linear_sum_assignment(shared.numpy(), maximize=True)
    return found[0], found[1]


def prototypes(material: Material) -> Start:
    """PDS: k-means of images and of captions apart, and the means of matched clusters.

    The clusters are found in the scorer's joint space, over all captions. A mean is one of the
    features that synthetic pairs are made of. In space ``pixels``, the real pair nearest to both
    centroids takes its place.

    Paper: PDS (ICLR 2026), which has CLIP's space, and draws images with an unCLIP decoder.
    """
    setting, count = material.setting, material.count
    owner = torch.from_numpy(setting.real["train"].owner)
    rng = np.random.default_rng(material.generator.initial_seed())
    sides = [_unit(side) for side in scorer_embeddings(setting)]
    image, text = (k_means(Rows(side), count, rng) for side in sides)
    pairs = matched(image.members[owner], text.members, count)
    if not material.features:
        centroids = image.centroids[pairs[0]], text.centroids[pairs[1]]
        chosen, captions = _nearest_pairs(sides[0][owner], sides[1], owner, centroids)
        return material.start(chosen, captions)
    features = joint_features(setting)
    means = [_means(each, found) for each, found in zip(features, (image, text), strict=True)]
    return Start(*material.encode(means[0][pairs[0]], means[1][pairs[1]]), None)


def _unit(embeddings: Features) -> Tensor:
    return F.normalize(torch.from_numpy(np.array(embeddings[:])).float(), dim=1)


def _means(features: Features, clusters: Clusters) -> np.ndarray:
    """The mean of each cluster; of an empty one, the point nearest to its centroid. Shape: (N, f)

    Args:
        features: of what was clustered. Shape: (M, f)
        clusters: N of them.
    """
    rows, members = np.asarray(features[:], np.float32), clusters.members.numpy()
    sums = np.zeros((len(clusters.centroids), rows.shape[1]))
    np.add.at(sums, members, rows)
    sizes = np.bincount(members, minlength=len(sums))
    means = sums / np.maximum(sizes, 1)[:, None]
    means[sizes == 0] = rows[clusters.nearest[sizes == 0]]
    return means.astype(np.float32)


def _nearest_pairs(
    images: Tensor, texts: Tensor, owner: Tensor, centroids: tuple[Tensor, Tensor]
) -> tuple[np.ndarray, np.ndarray]:
    """For each match, the pair nearest to its two centroids; no image is chosen twice.

    Args:
        images: of each pair, unit vectors. Shape: (C, e)
        texts: of each pair, unit vectors. Shape: (C, e)
        owner: the image of each pair. Shape: (C,)
        centroids: of each match. Shapes: (N, e), (N, e)
    """
    chosen, taken = [], torch.zeros(len(owner), dtype=torch.bool)
    for a, b in zip(*centroids, strict=True):
        # Of unit vectors, the nearest to a point has the largest product with it.
        near = (images @ a + texts @ b).masked_fill(taken, -torch.inf)
        chosen.append(int(near.argmax()))
        taken |= owner == owner[chosen[-1]]
    captions = np.array(chosen)
    return owner.numpy()[captions], captions
