"""Teachers: what all experts together think of real pairs."""

from __future__ import annotations

import json

import numpy as np
import torch
from torch import Tensor

from lors.data.shards import Features
from lors.experts import experts_of
from lors.files.cache import fingerprint
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
        self.setting, self.dtype = setting, setting.dtype
        self.networks = [setting.model("teacher") for _ in range(config.count)]
        for expert, network in enumerate(self.networks):
            setting.flat.load(store.snapshots(expert, late).mean(0), network)
        origin = json.dumps(store.origin, sort_keys=True)
        self._names = [
            fingerprint("teacher", origin, str(expert), str(late)) for expert in range(config.count)
        ]
        self._seen: list[Features] = []

    @torch.no_grad()
    def cosines(self, images: Tensor | np.ndarray, texts: Tensor) -> Tensor:
        """Between all images and texts.

        Args:
            images: what the image sides take, shape (m, …); or which images of the training split,
                of which what each teacher sees is computed once and kept. Shape: (m,)
            texts: what the text sides take. Shape: (m, …)

        Returns:
            Shape: (m, m)
        """
        total = texts.new_zeros(len(images), len(texts), dtype=self.dtype)
        for number, each in enumerate(self.networks):
            if isinstance(images, Tensor):
                u = each.embed_images(images)
            else:
                u = torch.from_numpy(self._all_images()[number][images]).to(total)
            total.addmm_(u, each.embed_texts(texts).T)
        return total / len(self.networks)

    def _all_images(self) -> list[Features]:
        """The training images as each teacher embeds them. Shape of each: (M, d)"""
        if not self._seen:
            named = zip(self.networks, self._names, strict=True)
            self._seen = [self.setting.seen_by(network, name) for network, name in named]
        return self._seen


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
