"""An image trunk in two parts: layers that stay as they are, and those after them, which train."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from lors.system.errors import InputError, suggestion

__all__ = ["layer_names", "split_trunk"]


def split_trunk(trunk: nn.Module, first: str) -> tuple[nn.Module, nn.Module]:
    """The part of a trunk before a layer, and the part from that layer on.

    >>> import timm
    >>> trunk = timm.create_model("mobilenetv2_035", num_classes=0).eval()
    >>> before, after = split_trunk(trunk, "blocks.5")
    >>> images = torch.rand(1, 3, 32, 32)
    >>> before(images).shape, torch.equal(after(before(images)), trunk(images))
    (torch.Size([1, 32, 2, 2]), True)

    Args:
        trunk: a chain of layers, as most convolutional networks are; in evaluation mode.
        first: the name of a layer, as ``layer_names`` lists them.

    Raises:
        InputError: there is no such layer, or the trunk is no chain.
    """
    layers = _chain(trunk)
    names = list(layers)
    if first not in names[1:]:
        raise InputError(
            f"encoder.trains_from: {first!r} is no later layer of the image trunk"
            f"{suggestion(first, names[1:])}: it has {', '.join(names[1:])}"
        )
    place = names.index(first)
    before, after = (
        nn.Sequential(OrderedDict((name.replace(".", "_"), layers[name]) for name in part))
        for part in (names[:place], names[place:])
    )
    for part in (before, after):
        if (known := getattr(trunk, "pretrained_cfg", None)) is not None:
            part.pretrained_cfg = known
    _check_chain(trunk, before, after)
    if not any(p.requires_grad for p in after.parameters()):
        raise InputError(f"encoder.trains_from: from {first!r} on, the image trunk has no weights")
    return before, after


def layer_names(trunk: nn.Module) -> list[str]:
    """The layers that a trunk is a chain of.

    >>> import timm
    >>> layer_names(timm.create_model("resnet10t", num_classes=0))[2:6]
    ['act1', 'maxpool', 'layer1', 'layer2']
    """
    return list(_chain(trunk))


def _chain(trunk: nn.Module) -> dict[str, nn.Module]:
    """A trunk's children by name; a sequence of stages counts as its stages."""
    layers: dict[str, nn.Module] = {}
    for name, child in trunk.named_children():
        if type(child) is nn.Sequential and name in ("blocks", "stages", "features", "layers"):
            layers |= {f"{name}.{number}": stage for number, stage in child.named_children()}
        else:
            layers[name] = child
    return layers


def _check_chain(trunk: nn.Module, before: nn.Module, after: nn.Module) -> None:
    """Refuse a trunk that does more than to call its layers one after the other."""
    size = getattr(trunk, "pretrained_cfg", {}).get("input_size", (3, 64, 64))[-1]
    parameter = next(trunk.parameters())
    if parameter.is_meta:  # only shapes are asked for
        return
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(2, 3, size, size, generator=draw).to(parameter)
    try:
        with torch.no_grad():
            same = torch.equal(after(before(images)), trunk(images))
    except (RuntimeError, TypeError):
        same = False
    if not same:
        raise InputError(
            f"a {type(trunk).__name__} is no chain of layers, so that no first part of it can stay "
            "as it is: leave encoder.trains_from out"
        )
