"""Frozen trunks made lighter: a batch norm with frozen statistics is a part of its convolution."""

from __future__ import annotations

import copy
from collections import Counter

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lors.encoders.image import has_batch_norm
from lors.encoders.own_parts import OwnImageTrunk
from lors.system.errors import InputError

__all__ = ["folded"]


def folded(trunk: nn.Module, size: int) -> nn.Module:
    """The trunk without the batch norms that follow a convolution; it computes the same.

    Which follows which is seen by running it, in double precision. If anything else takes a
    convolution's output too, the result would be another: then the trunk stays as it is.

    Args:
        trunk: in evaluation mode, for good.
        size: side of the images.

    Raises:
        InputError: the trunk cannot take images of that size.
    """
    for module in trunk.modules():
        if hasattr(module, "inplace"):  # what a gradient needs is else copied before it is lost
            module.inplace = False  # type: ignore[assignment]
    if not has_batch_norm(trunk):
        return trunk
    lighter = copy.deepcopy(trunk).double().cpu()
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0)).double()
    try:
        before, folds = _folds(lighter, images)
    except (RuntimeError, AssertionError, ValueError) as error:
        if isinstance(trunk, OwnImageTrunk):  # it runs, but not in double precision
            return trunk
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
    with torch.no_grad():
        same = torch.allclose(before, lighter(images), rtol=1e-6, atol=1e-8)
    like = next(trunk.parameters())
    return lighter.to(like.device, like.dtype) if same else trunk


@torch.no_grad()
def _folds(trunk: nn.Module, images: Tensor) -> tuple[Tensor, list[tuple[str, str]]]:
    """What the trunk computes, and the names of each convolution and its batch norm.

    Applies only to batch norms that run once, with statistics that are kept.
    """
    made: list[tuple[str, Tensor]] = []  # holds the outputs, so that no two have one identity
    found: list[tuple[str, str]] = []
    calls: Counter[str] = Counter()

    def convolved(name: str, output: Tensor) -> None:
        calls[name] += 1
        made.append((name, output))

    def normalises(name: str, given: Tensor) -> None:
        calls[name] += 1
        found.extend((conv, name) for conv, output in made if output is given)

    hooks = []
    for name, module in trunk.named_modules():
        if isinstance(module, nn.Conv2d):
            hooks.append(
                module.register_forward_hook(lambda _, __, out, name=name: convolved(name, out))
            )
        elif isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
            hooks.append(
                module.register_forward_pre_hook(
                    lambda _, args, name=name: normalises(name, args[0])
                )
            )
    features = trunk(images)
    for hook in hooks:
        hook.remove()
    return features, [fold for fold in found if all(calls[name] == 1 for name in fold)]


def _replace(trunk: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(trunk.get_submodule(parent), last, module)
