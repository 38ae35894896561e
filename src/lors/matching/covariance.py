"""Cross-covariance matching: synthetic pairs should tie images to texts as real pairs do."""

from __future__ import annotations

import torch
from torch import Tensor

from lors.config.matchers import CovarianceOptions
from lors.losses import nce
from lors.matching.distribution import mean_distance
from lors.matching.matcher import add_gradients, whole_set
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.seeding import draw_seed
from lors.training import Batch, sgd, train_step

__all__ = ["CovarianceMatcher", "covariance_distance"]


def covariance_distance(real: Batch, synthetic: Batch, rho: float = 1.0) -> Tensor:
    """‖ρ C_real - C_syn‖² with C = XᵀSY/m of centred image features X and text features Y.

    Expanded into Gram matrices, so that no matrix of f x d numbers is ever made:

        ‖C‖² = ⟨S, K_X S K_Y⟩ / m²,   ⟨C, C'⟩ = ⟨X X'ᵀ S', S Y Y'ᵀ⟩ / mm'.

    With S = I these are the usual cross-covariances; a learned S also ties images to other texts.

    Args:
        real: features and similarity of real pairs. Shapes: (m, f), (m, d), (m, m)
        synthetic: of synthetic pairs. Shapes: (n, f), (n, d), (n, n)
        rho: ρ, how much stronger the synthetic pairs should be tied.
    """
    a, b = _centred(real), _centred(synthetic)
    cross = _inner_product(a, b)
    return rho**2 * _inner_product(a, a) - 2 * rho * cross + _inner_product(b, b)


def _centred(batch: Batch) -> Batch:
    x, y = (part - part.mean(0) for part in (batch.inputs, batch.texts))
    return Batch(x, y, batch.similarity)


def _inner_product(a: Batch, b: Batch) -> Tensor:
    """⟨C_a, C_b⟩ of two centred batches."""
    images = a.inputs @ b.inputs.T @ b.similarity
    texts = a.similarity @ (a.texts @ b.texts.T)
    return (images * texts).sum() / (len(a.inputs) * len(b.inputs))


class CovarianceMatcher:
    """CovMatch: match the cross-covariance of the trunks' features, without any expert.

    The objective is ``covariance_distance`` of the features that the heads take, plus λ times the
    squared distance of the mean embeddings of images and of texts. Each call compares the whole set
    with one real batch and then trains the network on that batch with InfoNCE; after
    ``matching.steps`` calls a new network is drawn. In scope heads the features are always the
    same, and the network only matters for the means. The inner rates are not learned.

    Paper: `CovMatch: Cross-Covariance Guided Multimodal Dataset Distillation with Trainable Text
    Encoder <https://arxiv.org/abs/2510.18583>`_

    Args:
        setting: the real pairs, and how to draw a network.
        options: how to match.
    """

    Options = CovarianceOptions

    def __init__(self, setting: Setting, options: CovarianceOptions) -> None:
        self.setting, self.options = setting, options
        self.flat, self.network = setting.flat, setting.model("covariance")
        self.rho = self.options.rho or (2.0 if setting.config.distill.budget <= 100 else 1.0)
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the objective to images, texts and similarity; train the network.

        Args:
            synthetic: the set being learned.
            generator: draws the network at the start of an episode, and the real batch.

        Returns:
            The objective.
        """
        step = self._load_network(generator)
        inputs, texts = self.setting.real_batch(generator, self.options.real_batch_size)
        similarity = torch.eye(len(inputs), dtype=inputs.dtype, device=inputs.device)
        real = Batch(inputs, texts, similarity)
        objective = self._objective(real, whole_set(synthetic, self.network))
        add_gradients(objective, synthetic)
        rates = self.setting.config.experts.rates()
        train_step(self.network, sgd(self.network, rates), real, nce)
        self.network.zero_grad()
        following = torch.tensor((step + 1) % self.options.steps)
        self.state = {"theta": self.flat.flatten(self.network), "step": following}
        return objective.detach()

    def _objective(self, real: Batch, synthetic: Batch) -> Tensor:
        model = self.network
        with torch.no_grad():
            x, y = model.trunk_features(real.inputs, real.texts)
            embedded = model.project(x, y)
        features = model.trunk_features(synthetic.inputs, synthetic.texts)
        distance = covariance_distance(
            Batch(x, y, real.similarity), Batch(*features, synthetic.similarity), self.rho
        )
        ours = model.project(*features)
        means = sum(mean_distance(a, b) for a, b in zip(embedded, ours, strict=True))
        return distance + self.options.weight * means

    def _load_network(self, generator: torch.Generator) -> int:
        """Put θ into the network, a new one where an episode starts; how many steps it trained."""
        step = int(self.state["step"]) if self.state else 0
        if step == 0:
            theta = self.flat.flatten(self.setting.model(draw_seed(generator)))
        else:
            theta = self.state["theta"]
        self.flat.load(theta.to(next(self.network.parameters())), self.network)
        return step
