"""A dual encoder as a function of one vector of parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lors.encoders.dual import DualEncoder
from lors.encoders.recompute import plain_attention
from lors.system.parallel import replicated

__all__ = ["FlatModel"]


class FlatModel:
    """A dual encoder as a pure function of one parameter vector θ = (θ_V, θ_T).

    ``sides`` tells how many numbers of θ belong to each side, ``sizes`` to each weight tensor.

    Args:
        model: gives the architecture; its own weights are not touched.
    """

    def __init__(self, model: DualEncoder) -> None:
        self.model = model
        image, text = model.sides()
        by_identity = {id(p): name for name, p in model.named_parameters()}
        self._names = [by_identity[id(p)] for p in (*image, *text)]
        self._shapes = [p.shape for p in (*image, *text)]
        self._tied = _has_tied_tensors(model)
        self.sizes = [p.numel() for p in (*image, *text)]
        self.sides = (sum(p.numel() for p in image), sum(p.numel() for p in text))

    def flatten(self, model: DualEncoder) -> Tensor:
        """θ of a model of this architecture. Shape: (P,)"""
        image, text = model.sides()
        return torch.cat([p.detach().reshape(-1) for p in (*image, *text)])

    def load(self, theta: Tensor, model: DualEncoder) -> None:
        """Write θ into a model of this architecture."""
        image, text = model.sides()
        with torch.no_grad():
            for p, part in zip((*image, *text), theta.split(self.sizes), strict=True):
                p.copy_(part.view(p.shape))

    def tensors(self, theta: Tensor) -> list[Tensor]:
        """The weight tensors that θ strings together, those of the image side first."""
        parts = zip(theta.split(self.sizes), self._shapes, strict=True)
        return [part.view(shape) for part, shape in parts]

    def __call__(self, theta: Tensor, inputs: Tensor, texts: Tensor) -> Tensor:
        """Logits of θ on a batch, differentiable in all three. Shape: (m, m)"""
        theta = replicated(theta) if self.model.divided else theta
        values = dict(zip(self._names, self.tensors(theta), strict=True))
        with plain_attention():
            logits: Tensor = functional_call(
                self.model, values, (inputs, texts), tie_weights=self._tied
            )
        return logits


def _has_tied_tensors(model: nn.Module) -> bool:
    """Whether a tensor has several names, which torch would look for at every call."""
    for named in (model.named_parameters, model.named_buffers):
        if len(list(named())) < len(list(named(remove_duplicate=False))):
            return True
    return False
