"""Distribution matching: synthetic data should lie where real data lies in the joint space."""

from __future__ import annotations

import torch
from torch import Tensor

from lors.config.matchers import DistributionOptions
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.seeding import draw_seed

__all__ = ["DistributionMatcher", "mean_distance"]


def mean_distance(real: Tensor, synthetic: Tensor) -> Tensor:
    """‖mean of the real - mean of the synthetic embeddings‖²

    Args:
        real: embeddings of real data. Shape: (m, d)
        synthetic: embeddings of synthetic data. Shape: (n, d)

    >>> mean_distance(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    tensor(5.)
    """
    return (real.mean(0) - synthetic.mean(0)).square().sum()


class DistributionMatcher:
    """Distribution matching (DM), with image-text pairs in the place of labelled images.

    Every iteration draws a network and compares the mean embedding of a real batch with that of
    the synthetic pairs, for images and for texts. DM compares class by class; pairs have no
    classes, so one mean stands for everything and nothing says which image belongs to which text,
    which is why it does badly here. The similarity and the inner rates are not learned.

    Paper: `Dataset Condensation with Distribution Matching <https://arxiv.org/abs/2110.04181>`_

    Args:
        setting: the real pairs, and how to draw a network.
        options: how to match.
    """

    Options = DistributionOptions

    def __init__(self, setting: Setting, options: DistributionOptions) -> None:
        self.setting, self.options = setting, options
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the distance to images and texts.

        Args:
            synthetic: the set being learned.
            generator: draws the network, the real batch, and as large a synthetic one if the set
                is larger.

        Returns:
            The distance of the image means plus that of the text means: from 0 to 8.
        """
        model = self.setting.model(draw_seed(generator)).requires_grad_(False)
        inputs, texts = self.setting.real_batch(generator, self.options.real_batch_size)
        index = next(synthetic.passes(len(inputs), generator)).to(inputs.device)
        u = model.embed_images(model.freeze(synthetic.images[index]))
        v = model.embed_texts(synthetic.texts[index])
        distance = mean_distance(model.embed_images(inputs), u)
        distance = distance + mean_distance(model.embed_texts(texts), v)
        if distance.requires_grad:
            distance.backward()
        return distance.detach()
