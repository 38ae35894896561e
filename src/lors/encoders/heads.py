"""Heads: the small trainable maps from a trunk's features into the joint space."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from lors.errors import InputError

__all__ = ["HEADS", "MlpHead"]


class MlpHead(nn.Module):
    """A projection and a residual layer: LayerNorm(p + W GELU(p)) with p = V x.

    Args:
        inputs: size of the features.
        outputs: size of the joint space.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, outputs)
        self.residual = nn.Linear(outputs, outputs)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, features: Tensor) -> Tensor:
        projected = self.project(features)
        return self.norm(projected + self.residual(nn.functional.gelu(projected)))


def _none(inputs: int, outputs: int) -> nn.Module:
    if inputs != outputs:
        raise InputError(
            f"head 'none' keeps the trunk's {inputs} features, but the joint space has {outputs}: "
            "use a linear or mlp head, or leave encoder.embed_dim unset"
        )
    return nn.Identity()


HEADS: dict[str, Callable[[int, int], nn.Module]] = {
    "none": _none,
    "linear": nn.Linear,
    "mlp": MlpHead,
}
