"""Joint distribution matching: synthetic pairs should lie where real pairs lie, as pairs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config.matchers import JointDistributionOptions
from lors.experts import experts_of
from lors.matching.matcher import add_gradients, whole_set
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting

__all__ = ["JointDistributionMatcher", "joint_distance", "kernel_distance"]


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

    off = ~torch.eye(len(real), dtype=torch.bool, device=real.device)
    scale = 2 * squares(real, real)[off].median().clamp(min=torch.finfo(real.dtype).tiny)

    def mean_kernel(a: Tensor, b: Tensor) -> Tensor:
        return (-squares(a, b) / scale).exp().mean()

    cross = mean_kernel(real, synthetic)
    return mean_kernel(real, real) - 2 * cross + mean_kernel(synthetic, synthetic)


def joint_distance(real: tuple[Tensor, Tensor], synthetic: tuple[Tensor, Tensor]) -> Tensor:
    """Kernel distances of where u + v points, on which a pair agrees, and of where u - v points.

    Unlike the distances of images and of texts apart, they change if captions are exchanged.

    Args:
        real: u and v of real pairs. Shapes: (m, d), (m, d)
        synthetic: of synthetic pairs. Shapes: (n, d), (n, d)
    """
    distances = [
        kernel_distance(*(F.normalize(u + sign * v, dim=1) for u, v in (real, synthetic)))
        for sign in (1, -1)
    ]
    return torch.stack(distances).sum()


class JointDistributionMatcher:
    """Multimodal distribution matching (MDM).

    Every iteration draws two snapshots of an expert, from its range of start epochs, and a point on
    the line between them: that is the network. The objective is the contrastive loss of the
    synthetic pairs plus ``matching.weight`` times ``joint_distance`` to a real batch. With a
    learned similarity, only the contrastive loss knows of it; it pulls S towards what the network
    sees, with nothing to stop it but the number of iterations, so its rate should be small. The
    inner rates are not learned.

    The paper draws independently trained networks near one pretrained anchor. Heads have no common
    anchor, and the middle between two of them is no network; hence two snapshots of one expert.

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
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
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
        objective = contrastive + self.options.weight * joint_distance(real, (u, v))
        add_gradients(objective, synthetic)
        return objective.item()

    def _between(self, generator: torch.Generator, like: Tensor) -> Tensor:
        """A point drawn evenly on the line between two drawn snapshots of an expert. Shape: (P,)"""
        bounds = self.options.min_start_epoch, self.options.max_start_epoch
        count = self.setting.config.experts.count
        expert = int(torch.randint(count, (), generator=generator))
        epochs = torch.randint(*bounds, (2,), generator=generator).tolist()
        share = torch.rand((), generator=generator).item()
        first, second = self.experts.snapshots(expert, epochs).to(like)
        return torch.lerp(first, second, share)
