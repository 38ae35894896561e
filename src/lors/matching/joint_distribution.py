"""Joint distribution matching: synthetic pairs should lie where real pairs lie, as pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config.matchers import JointDistributionOptions
from lors.experts import experts_of
from lors.matching.matcher import add_gradients, whole_set
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.transfers import moved

__all__ = [
    "JointDistributionMatcher",
    "geodesic_distance",
    "joint_distance",
    "kernel_distance",
    "squared_angles",
]

Distance = Callable[[Tensor, Tensor], Tensor]

MIDDLE = 0.5
"""The paper's α: where between two experts the network lies."""
NEAR = 1e-3
"""Below this 1 - cos, angles come from their series: the arc cosine has no slope at 1."""
OPPOSITE = 1e-5
"""Of points that are this near to opposite, no gradient is taken: it has no limit there."""


def squared_angles(cosines: Tensor) -> Tensor:
    """arccos(c)² with its derivative, also at c = 1, where it is -2.

    >>> squared_angles(torch.tensor([1.0, 0.0])).sqrt()
    tensor([0.0000, 1.5708])

    Args:
        cosines: of any shape.
    """
    gap = 1 - cosines
    far = torch.where(gap > NEAR, cosines, 0).clamp(min=OPPOSITE - 1).arccos().square()
    # arccos(1 - g)² = 2g + g²/3 + 4g³/45 + g⁴/35 + …
    series = gap * (2 + gap * (1 / 3 + gap * (4 / 45 + gap / 35)))
    return torch.where(gap > NEAR, far, series)


def geodesic_distance(real: Tensor, synthetic: Tensor, sigma: float) -> Tensor:
    """The maximum mean discrepancy of two samples on the sphere: the root, not its square.

    The kernel is exp(-a² / 2σ²) of angles a. Being no inner product for every sample, it may give a
    square below zero, which counts as zero.

    Args:
        real: unit vectors. Shape: (m, d)
        synthetic: unit vectors. Shape: (n, d)
        sigma: σ.
    """
    real, synthetic = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in (real, synthetic))

    def mean_kernel(a: Tensor, b: Tensor) -> Tensor:
        return (-squared_angles(a @ b.T) / (2 * sigma**2)).exp().mean()

    cross = mean_kernel(real, synthetic)
    square = mean_kernel(real, real) - 2 * cross + mean_kernel(synthetic, synthetic)
    return square.clamp(min=torch.finfo(square.dtype).eps).sqrt()


def kernel_distance(real: Tensor, synthetic: Tensor) -> Tensor:
    """The squared maximum mean discrepancy of two samples, with a Gaussian kernel.

    The kernel is exp(-‖a - b‖² / 2σ²), where σ² is the median of ‖a - b‖² among the real ones. It
    is zero for equal samples, and at most 2.

    Args:
        real: Shape: (m, d), m > 1
        synthetic: Shape: (n, d)
    """
    real, synthetic = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in (real, synthetic))

    def squares(a: Tensor, b: Tensor) -> Tensor:
        return a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T

    m = len(real)
    off = squares(real, real).flatten()[1:].view(m - 1, m + 1)[:, :-1]  # all but the diagonal
    scale = 2 * off.median().clamp(min=torch.finfo(real.dtype).tiny)

    def mean_kernel(a: Tensor, b: Tensor) -> Tensor:
        return (-squares(a, b) / scale).exp().mean()

    cross = mean_kernel(real, synthetic)
    return mean_kernel(real, real) - 2 * cross + mean_kernel(synthetic, synthetic)


def joint_distance(
    real: tuple[Tensor, Tensor],
    synthetic: tuple[Tensor, Tensor],
    distance: Distance = kernel_distance,
) -> Tensor:
    """Distances of where u + v points, on which a pair agrees, and of where u - v points.

    Unlike the distances of images and of texts apart, they change if captions are exchanged.

    Args:
        real: u and v of real pairs. Shapes: (m, d), (m, d)
        synthetic: of synthetic pairs. Shapes: (n, d), (n, d)
        distance: of two samples of unit vectors.
    """
    distances = [
        distance(*(F.normalize(u + sign * v, dim=1) for u, v in (real, synthetic)))
        for sign in (1, -1)
    ]
    return torch.stack(distances).sum()


class JointDistributionMatcher:
    """Multimodal distribution matching (MDM).

    Every iteration draws two experts, at epochs drawn apart, and the network is the middle between
    them; or, with ``networks=one expert``, a point on the line between two snapshots of one. The
    objective is the contrastive loss of the synthetic pairs plus ``matching.weight`` times
    ``joint_distance`` to a real batch. With a learned similarity, only the contrastive loss knows
    of it; it pulls S towards what the network sees, with nothing to stop it but the number of
    iterations, so its rate should be small. The inner rates are not learned.

    Paper: `Multimodal Distribution Matching for Vision-Language Dataset Distillation
    <https://arxiv.org/abs/2605.23482>`_

    Args:
        setting: the real pairs, the experts, the contrastive loss.
        options: how to match.
    """

    Options = JointDistributionOptions

    def __init__(self, setting: Setting, options: JointDistributionOptions) -> None:
        self.setting, self.options, self.experts = setting, options, experts_of(setting)
        self.network = setting.model("joint distribution")
        self.distance: Distance = kernel_distance
        if options.kernel == "geodesic":
            self.distance = partial(geodesic_distance, sigma=options.sigma)
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the objective to images, texts and similarity.

        Args:
            synthetic: the set being learned.
            generator: draws the network and the real batch.

        Returns:
            The objective.
        """
        theta = self._between(generator, synthetic.images)
        self.setting.flat.load(theta, self.network)
        inputs, texts = self.setting.real_batch(generator, self.options.real_batch_size)
        with torch.no_grad():
            real = self.network.embed_images(inputs), self.network.embed_texts(texts)
        batch = whole_set(synthetic, self.network)
        u, v = self.network.embed_images(batch.inputs), self.network.embed_texts(batch.texts)
        contrastive = self.setting.loss(self.network.logits(u, v), batch.similarity)
        objective = contrastive + self.options.weight * joint_distance(real, (u, v), self.distance)
        add_gradients(objective, synthetic)
        return objective.detach()

    def _between(self, generator: torch.Generator, like: Tensor) -> Tensor:
        """The middle of two experts, or a point drawn between two snapshots of one. Shape: (P,)"""
        config = self.setting.config.experts
        bounds = self.options.epochs_within(config.epochs)
        if self.options.networks == "two experts":
            experts = torch.randperm(config.count, generator=generator)[:2].tolist()
            epochs = torch.randint(*bounds, (2,), generator=generator).tolist()
            found = [
                self.experts.snapshots(expert, [epoch])[0]
                for expert, epoch in zip((experts * 2)[:2], epochs, strict=True)
            ]
            return torch.lerp(moved(found[0], like), moved(found[1], like), MIDDLE)
        expert = int(torch.randint(config.count, (), generator=generator))
        epochs = torch.randint(*bounds, (2,), generator=generator).tolist()
        share = torch.rand((), generator=generator).item()
        first, second = moved(self.experts.snapshots(expert, epochs), like)
        return torch.lerp(first, second, share)
