"""Teachers: what all experts together think of real pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from lors.matching.matcher import Setting

__all__ = ["Teachers"]


class Teachers:
    """The experts at their last epoch; they agree on the mean of their cosines.

    Args:
        setting: the experts.
    """

    def __init__(self, setting: Setting) -> None:
        config, store = setting.config.experts, setting.experts()
        self.flat, self.network = setting.flat, setting.model("teacher")
        like = next(self.network.parameters())
        self.thetas = [
            store.snapshots(expert, [config.epochs])[0].to(like) for expert in range(config.count)
        ]

    @torch.no_grad()
    def cosines(self, inputs: Tensor, texts: Tensor) -> Tensor:
        """Between all images and texts. Shapes: (m, …), (m, …) -> (m, m)"""
        total = torch.zeros(())
        for theta in self.thetas:
            self.flat.load(theta, self.network)
            total = total.to(theta) + (
                self.network.embed_images(inputs) @ self.network.embed_texts(texts).T
            )
        return total / len(self.thetas)
