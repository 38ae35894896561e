"""Frozen trunks made lighter: a batch norm with frozen statistics is a part of its convolution."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lors.errors import InputError

__all__ = ["folded"]

TOLERANCE = 1e-3


def folded(trunk: nn.Module, size: int) -> nn.Module:
    """The trunk without the batch norms that follow a convolution; it computes the same.

    Which follows which is seen by running it. If anything else takes a convolution's output too,
    the folded trunk would compute something else: then the trunk stays as it is.

    Args:
        trunk: in evaluation mode, for good.
        size: side of the images.

    Raises:
        InputError: the trunk cannot take images of that size.
    """
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    images = images.to(next(trunk.parameters()))
    lighter = copy.deepcopy(trunk)
    try:
        folds = _folds(trunk, images)
    except RuntimeError as error:
        raise InputError(
            f"the image trunk cannot take images of {size} px, set another encoder.image_size: "
            f"{error}"
        ) from None
    for first, second in folds:
        conv, norm = lighter.get_submodule(first), lighter.get_submodule(second)
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        _replace(lighter, first, fuse_conv_bn_eval(conv, norm))
        # timm's batch norms end with an activation.
        rest = [getattr(norm, name, None) for name in ("drop", "act")]
        _replace(lighter, second, nn.Sequential(*(part for part in rest if part is not None)))
    for module in lighter.modules():
        if hasattr(module, "inplace"):  # what a gradient needs is else copied before it is lost
            module.inplace = False  # type: ignore[assignment]
    with torch.no_grad():
        before, after = trunk(images), lighter(images)
    same = torch.allclose(before, after, TOLERANCE, TOLERANCE * float(before.abs().max()))
    return lighter if same else trunk


@torch.no_grad()
def _folds(trunk: nn.Module, images: Tensor) -> list[tuple[str, str]]:
    """The names of each convolution and of the batch norm that takes its output."""
    made: list[tuple[str, Tensor]] = []  # holds the outputs, so that no two have one identity
    found: dict[str, str] = {}

    def remember(name: str, output: Tensor) -> None:
        made.append((name, output))

    def look(name: str, given: Tensor) -> None:
        found.update((conv, name) for conv, output in made if output is given)

    hooks = []
    for name, module in trunk.named_modules():
        if isinstance(module, nn.Conv2d):
            hooks.append(
                module.register_forward_hook(lambda _, __, out, name=name: remember(name, out))
            )
        elif isinstance(module, nn.BatchNorm2d):
            hooks.append(
                module.register_forward_pre_hook(lambda _, args, name=name: look(name, args[0]))
            )
    trunk(images)
    for hook in hooks:
        hook.remove()
    return list(found.items())


def _replace(trunk: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(trunk.get_submodule(parent), last, module)
