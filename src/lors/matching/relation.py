"""Relation matching: the set should relate images to texts as real pairs do, in hyperbolic space.

The relation of some pairs is the cross-covariance of their embeddings, R = UᵀSV / m. What the k
strongest directions of the real one span is its range, and the rest is the residual: coarse and
fine semantics. Rows of both are points of a hyperbolic space, where distances grow with the
distance from the origin, so that rows that say much count more than rows that say little.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lors.config.matchers import RelationOptions
from lors.experts import experts_of
from lors.matching.matcher import add_gradients, whole_set
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.transfers import moved

__all__ = ["RelationMatcher", "hyperbolic_squares", "lifted", "range_and_residual", "relation"]

EDGE = 1e-5
"""Points stay this far from the edge of the ball, where numbers end."""


def relation(u: Tensor, v: Tensor, similarity: Tensor | None = None) -> Tensor:
    """UᵀSV / m of centred embeddings.

    >>> relation(torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [0.0]]))
    tensor([[1.]])

    Args:
        u: of images. Shape: (m, d)
        v: of texts. Shape: (m, d)
        similarity: S; None: the identity. Shape: (m, m)
    """
    u, v = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in (u, v))
    u, v = u - u.mean(0), v - v.mean(0)
    return u.T @ (v if similarity is None else similarity.to(v) @ v) / len(u)


def range_and_residual(real: Tensor, other: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """A relation in the k strongest directions of the real one, and what these leave of it.

    With R_real = P σ Qᵀ these are P_kᵀ R Q_k, and (I - P_k P_kᵀ) R (I - Q_k Q_kᵀ).

    >>> real = torch.diag(torch.tensor([3.0, 2.0, 1.0]))
    >>> span, rest = range_and_residual(real, real, rank=1)
    >>> span, rest.diagonal()
    (tensor([[3.]]), tensor([0., 2., 1.]))

    Args:
        real: the relation of real pairs. Shape: (d, d)
        other: which to divide. Shape: (d, d)
        rank: k, at most d.

    Returns:
        Shapes: (k, k), (d, d)
    """
    p, _, q = torch.linalg.svd(real)
    p, q = p[:, :rank], q[:rank].T
    rest = other - p @ (p.T @ other)
    return p.T @ other @ q, rest - (rest @ q) @ q.T


def lifted(vectors: Tensor, curvature: float) -> Tensor:
    """Rows as points of the Poincaré ball: the exponential map at its centre.

    >>> lifted(torch.tensor([[1.0, 0.0]]), 1.0)
    tensor([[0.7616, 0.0000]])

    Args:
        vectors: Shape: (n, d)
        curvature: c.
    """
    norms = vectors.square().sum(1, keepdim=True).clamp(min=1e-12).sqrt() * curvature**0.5
    return vectors * (norms.tanh().clamp(max=1 - EDGE) / norms)


def hyperbolic_squares(x: Tensor, y: Tensor, curvature: float) -> Tensor:
    """The squared distances of points of the Poincaré ball, row by row.

    d(x, y) = arcosh(1 + 2c‖x - y‖² / (1 - c‖x‖²)(1 - c‖y‖²)) / √c

    >>> origin, point = torch.zeros(1, 2), lifted(torch.tensor([[0.6, 0.8]]), 1.0)
    >>> hyperbolic_squares(origin, point, 1.0)  # a vector of length 1 is lifted to distance 2
    tensor([4.0000])

    Args:
        x: Shape: (n, d)
        y: Shape: (n, d)
        curvature: c.
    """
    gaps = (1 - curvature * t.square().sum(1) for t in (x, y))
    z = 2 * curvature * (x - y).square().sum(1) / (next(gaps) * next(gaps))
    z = z.clamp(min=1e-12)  # of equal points, the root has no slope
    return torch.log1p(z + (z * (z + 2)).sqrt()).square() / curvature


class RelationMatcher:
    """Relation matching, our reading of RAHA.

    Every iteration draws an expert at a drawn epoch, and a real batch. The range and the residual
    of the relation of the real batch are compared with those of the whole set, row by row, by mean
    squared hyperbolic distances. Each is first divided by the mean length of its real rows, so that
    they lie where the space is curved. A learned similarity is part of the relation. The inner
    rates are not learned.

    Paper: RAHA (ECCV 2026), of which we know that the rank-k range and the residual of the
    cross-modal relation are matched in hyperbolic space. All else is our reading.

    Args:
        setting: the real pairs, and the experts.
        options: how to match.
    """

    Options = RelationOptions

    def __init__(self, setting: Setting, options: RelationOptions) -> None:
        self.setting, self.options, self.experts = setting, options, experts_of(setting)
        self.network = setting.model("relation")
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the objective to images, texts and similarity.

        Args:
            synthetic: the set being learned.
            generator: draws the network and the real batch.

        Returns:
            The objective.
        """
        self._load_network(generator, synthetic.images)
        inputs, texts = self.setting.real_batch(generator, self.options.real_batch_size)
        with torch.no_grad():
            real = relation(self.network.embed_images(inputs), self.network.embed_texts(texts))
        batch = whole_set(synthetic, self.network)
        u, v = self.network.embed_images(batch.inputs), self.network.embed_texts(batch.texts)
        objective = self._distance(real, relation(u, v, batch.similarity))
        add_gradients(objective, synthetic)
        return objective.detach()

    def _distance(self, real: Tensor, ours: Tensor) -> Tensor:
        c, rank = self.options.curvature, min(self.options.rank, len(real))
        objective = ours.new_zeros(())
        weights = (1.0, self.options.weight)
        parts = (range_and_residual(real, each, rank) for each in (real, ours))
        least = 1e-5 * real.norm()
        for weight, there, here in zip(weights, *parts, strict=True):
            there_is = there.norm() > least  # else it is rounding: the range is all there is
            scale = torch.where(there_is, there.norm(dim=1).mean(), 1)
            squares = hyperbolic_squares(lifted(there / scale, c), lifted(here / scale, c), c)
            objective = objective + torch.where(there_is, weight * squares.mean(), 0)
        return objective

    def _load_network(self, generator: torch.Generator, like: Tensor) -> None:
        config = self.setting.config.experts
        expert = int(torch.randint(config.count, (), generator=generator))
        bounds = self.options.epochs_within(config.epochs)
        epoch = int(torch.randint(*bounds, (), generator=generator))
        theta = moved(self.experts.snapshots(expert, [epoch])[0], like)
        self.setting.flat.load(theta, self.network)
