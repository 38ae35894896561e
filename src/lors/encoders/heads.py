"""Heads: the small trainable maps from a trunk's features into the joint space."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from lors.config import names
from lors.system.errors import InputError
from lors.system.registry import Registry

__all__ = ["HEADS", "MlpHead", "first_layer", "no_head"]

HEADS: Registry[Callable[[int, int], nn.Module]] = names.HEADS


class Residual(nn.Module):
    """LayerNorm(p + W GELU(p)).

    Args:
        size: of p.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, projected: Tensor) -> Tensor:
        return self.norm(projected + self.layer(nn.functional.gelu(projected)))


class MlpHead(nn.Module):
    """A projection and a residual layer: LayerNorm(p + W GELU(p)) with p = V x.

    Args:
        inputs: size of the features.
        outputs: size of the joint space.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, outputs)
        self.residual = Residual(outputs)

    def forward(self, features: Tensor) -> Tensor:
        return self.residual(self.project(features))


def first_layer(head: nn.Module) -> tuple[nn.Linear, nn.Module] | None:
    """The linear layer that a head begins with and the module that follows, if it is so made."""
    if isinstance(head, MlpHead):
        return head.project, head.residual
    if isinstance(head, nn.Linear):
        return head, nn.Identity()
    return None


def no_head(inputs: int, outputs: int) -> nn.Module:
    if inputs != outputs:
        raise InputError(
            f"head 'none' keeps the trunk's {inputs} features, but the joint space has {outputs}: "
            "use a linear or mlp head, or leave encoder.embed_dim unset"
        )
    return nn.Identity()
