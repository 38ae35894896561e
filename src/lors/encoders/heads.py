"""Heads: the small trainable maps from a trunk's features into the joint space."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from lors.config import names
from lors.encoders.dropout import Dropout
from lors.system.errors import InputError
from lors.system.registry import Registry

__all__ = ["HEADS", "MlpHead", "PublishedHead", "first_layer", "no_head"]

HEADS: Registry[Callable[[int, int], nn.Module]] = names.HEADS


class Residual(nn.Module):
    """LayerNorm(p + W GELU(p)), with dropout of W GELU(p) if there is any.

    Args:
        size: of p.
        dropout: the share of values that is dropped in training.
    """

    def __init__(self, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.dropout = Dropout(dropout) if dropout else nn.Identity()
        self.norm = nn.LayerNorm(size)

    def forward(self, projected: Tensor) -> Tensor:
        changed = self.dropout(self.layer(nn.functional.gelu(projected)))
        return self.norm(projected + changed)


class MlpHead(nn.Module):
    """A projection and a residual layer: LayerNorm(p + W GELU(p)) with p = V x.

    Args:
        inputs: size of the features.
        outputs: size of the joint space.
    """

    dropout = 0.0

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, outputs)
        self.residual = Residual(outputs, self.dropout)

    def forward(self, features: Tensor) -> Tensor:
        return self.residual(self.project(features))


class PublishedHead(MlpHead):
    """The text head of the published LoRS code: the same with dropout of 0.1.

    Dropout is at work where networks train: in experts, in the inner steps of trajectory matching
    and in evaluation. Other matchers run their networks without.

    >>> head = PublishedHead(768, 2304)
    >>> [tuple(p.shape) for p in head.parameters()]
    [(2304, 768), (2304,), (2304, 2304), (2304,), (2304,), (2304,)]

    Args:
        inputs: size of the features.
        outputs: size of the joint space.
    """

    dropout = 0.1


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
