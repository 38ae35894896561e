"""Teachers: what all experts together think of real pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from lors.experts import experts_of
from lors.setting import Setting

__all__ = ["Teachers", "noised"]


class Teachers:
    """Each expert as the mean of its weights over the second half of its training.

    That mean retrieves better than any one epoch. Together they think the mean of their cosines.

    Args:
        setting: the experts.
    """

    def __init__(self, setting: Setting) -> None:
        config, store = setting.config.experts, experts_of(setting)
        late = [epoch for epoch in store.kept(0) if epoch >= config.epochs / 2]
        self.dtype = setting.dtype
        self.networks = [setting.model("teacher") for _ in range(config.count)]
        for expert, network in enumerate(self.networks):
            setting.flat.load(store.snapshots(expert, late).mean(0), network)

    @torch.no_grad()
    def cosines(self, inputs: Tensor, texts: Tensor) -> Tensor:
        """Between all images and texts. Shapes: (m, …), (m, …) -> (m, m)"""
        total = inputs.new_zeros(len(inputs), len(texts), dtype=self.dtype)
        for each in self.networks:
            total.addmm_(each.embed_images(inputs), each.embed_texts(texts).T)
        return total / len(self.networks)


def noised(inputs: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    """Inputs with normal noise; tokens stay as they are.

    >>> noised(torch.zeros(2, 2), 0.5, torch.Generator().manual_seed(0)).abs().max() > 0
    tensor(True)
    >>> noised(torch.zeros(2, 2), 0.0, torch.Generator()).abs().max()
    tensor(0.)
    """
    if not deviation or not inputs.is_floating_point():
        return inputs
    noise = torch.randn(inputs.shape, generator=generator, dtype=torch.float32)
    return inputs + deviation * noise.to(inputs)
