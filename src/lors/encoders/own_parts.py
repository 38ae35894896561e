"""Encoders that were given in Python, each with a digest of what it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor, nn

from lors.encoders.trial import features_of, noise, pooled
from lors.system.content import content_digest
from lors.system.errors import InputError
from lors.system.registry import Registry
from lors.system.seeding import global_seed

__all__ = [
    "NETWORKS",
    "OWN_IMAGES",
    "OwnImage",
    "OwnImageTrunk",
    "OwnNetwork",
    "as_module",
    "copies",
    "drawn",
]

Make = Callable[[], Any]
Factory = Callable[[], nn.Module]


class OwnImageTrunk(nn.Module):
    """An image module of the caller's own, as trunks are here: pooled features of known size.

    Args:
        module: normalised images to features. Shape: (m, 3, size, size) -> (m, f) or (m, f, h, w)
        features: f.
        mean: of the pixels that it expects, per channel.
        std: likewise.
        what: it is, for messages.
    """

    def __init__(
        self,
        module: nn.Module,
        features: int,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        what: str,
    ) -> None:
        super().__init__()
        self.module, self.num_features, self.what = module, features, what
        self.pretrained_cfg = {"mean": mean, "std": std}  # where timm's models have them
        if not any(True for _ in module.parameters()):  # a parameter tells the device and the type
            self.place = nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, images: Tensor) -> Tensor:
        return pooled(self.module(images), self.what)


@dataclass(frozen=True, eq=False)
class OwnImage:
    """An image trunk that was given in Python.

    Args:
        given: a module, of which every network gets a copy, or a function that makes one.
        mean: of the pixels that it expects, per channel; default: what the module says, as timm's
            do, or ImageNet's.
        std: likewise.
    """

    given: nn.Module | Factory
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_pixels(self.mean, self.std)
        object.__setattr__(self, "given", _kept(self.given))

    @cached_property
    def sample(self) -> nn.Module:
        """The module, or the one that is made at seed 0."""
        return self.given if isinstance(self.given, nn.Module) else drawn(self.make, "image trunk")

    @cached_property
    def digest(self) -> str:
        return content_digest(self.given, self.sample, *self.normalised_by)

    def make(self) -> nn.Module:
        """A copy, or a new module with weights drawn by torch's global generator."""
        return as_module(copies(self.given)(), "the image trunk")

    @cached_property
    def normalised_by(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return normalised_by(self.sample, self.mean, self.std)

    @cached_property
    def native_size(self) -> int:
        """The side of the images that it was made for, if it says so, as timm's models do."""
        return native_size(self.sample)

    def build(self, size: int, what: str) -> OwnImageTrunk:
        """The trunk for images of a size."""
        return OwnImageTrunk(self.make(), self.features(size, what), *self.normalised_by, what)

    def features(self, size: int, what: str) -> int:
        """How many features it gives for images of a size: seen by running it."""
        if size not in self.sizes:
            with torch.device("cpu"), torch.no_grad():
                self.sizes[size] = features_of(self.sample, noise(3, size, size), what).shape[1]
        return self.sizes[size]


@dataclass(frozen=True, eq=False)
class OwnNetwork:
    """What trains of a dual encoder, both sides, given as a function that makes it.

    Args:
        given: makes an image module and a text module.
        mean: scopes image and all: of the pixels; as for ``OwnImage``.
        std: likewise.
    """

    given: Callable[[], tuple[nn.Module, nn.Module]]
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None

    def __post_init__(self) -> None:
        _check_pixels(self.mean, self.std)
        if not callable(self.given) or isinstance(self.given, nn.Module):
            raise InputError(
                "a model is given as a function without arguments that makes an image module and "
                f"a text module, not as a {type(self.given).__name__}: write lambda: (image, text)"
            )

    @cached_property
    def sample(self) -> tuple[nn.Module, nn.Module]:
        """The modules that are made at seed 0."""
        return drawn(self.make, "network")

    @cached_property
    def digest(self) -> str:
        return content_digest(self.given, self.sample, self.mean, self.std)

    def make(self) -> tuple[nn.Module, nn.Module]:
        """New modules with weights drawn by torch's global generator."""
        made = copies(self.given)()
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise InputError(
                "the function that makes a model must return two modules, (image, text), not "
                f"{_count(made)}"
            )
        image, text = (as_module(part, f"the {s}") for part, s in zip(made, SIDES, strict=True))
        shared = {id(p) for p in image.parameters()} & {id(p) for p in text.parameters()}
        if shared:
            raise InputError(
                "the image module and the text module share parameters: each side trains at a rate "
                "of its own, so give each its own"
            )
        return image, text

    def sides(self, pixels: bool) -> tuple[nn.Module, nn.Module]:
        """New modules; an image module that takes pixels gives pooled features."""
        image, text = self.make()
        if pixels:
            image = OwnImageTrunk(image, 0, *self.normalised_by, "the image module")
        return image, text

    @cached_property
    def normalised_by(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return normalised_by(self.sample[0], self.mean, self.std)

    @cached_property
    def native_size(self) -> int:
        return native_size(self.sample[0])


SIDES = ("image module", "text module")
OWN_IMAGES: Registry[OwnImage] = Registry("image trunk", {})
NETWORKS: Registry[OwnNetwork] = Registry("network", {})


def copies(given: Any) -> Make:
    """Makes a copy of a module each time, or what a function makes; nothing is ever shared."""
    if isinstance(given, nn.Module):
        return lambda: copy.deepcopy(given)
    return lambda: copy.deepcopy(_called(given))


def drawn(make: Make, what: str) -> Any:
    """What is made at seed 0, on the CPU.

    Raises:
        InputError: it is another each time.
    """
    with torch.device("cpu"):
        with global_seed(0, what):
            first = make()
        with global_seed(0, what):
            again = make()
    if content_digest(first) != content_digest(again):
        raise InputError(
            f"the {what} is another each time that it is made, also with torch.manual_seed: draw "
            "its weights with torch alone"
        )
    return first


def normalised_by(
    module: nn.Module, mean: Sequence[float] | None, std: Sequence[float] | None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of the pixels: as given, as the module says, or ImageNet's."""
    said = _said_of_pixels(module)
    first = mean or said.get("mean") or IMAGENET_DEFAULT_MEAN
    second = std or said.get("std") or IMAGENET_DEFAULT_STD
    return tuple(map(float, first)), tuple(map(float, second))


def native_size(module: nn.Module) -> int:
    return int(_said_of_pixels(module).get("input_size", (3, 224, 224))[-1])


def _said_of_pixels(module: nn.Module) -> dict[str, Any]:
    said = getattr(module, "pretrained_cfg", None)
    return said if isinstance(said, dict) else {}


def _kept(given: Any) -> Any:
    """A module as it is now, whatever is done with it later; a function as it is."""
    if isinstance(given, nn.Module):
        return as_module(copy.deepcopy(given), "the image trunk").cpu()
    if not callable(given):
        raise InputError(
            "an image trunk is a name, an nn.Module or a function that makes one, not a "
            f"{type(given).__name__}"
        )
    return given


def _called(make: Make) -> Any:
    try:
        return make()
    except TypeError as error:
        if "argument" not in str(error):
            raise
        name = getattr(make, "__qualname__", type(make).__qualname__)
        raise InputError(
            f"{name} cannot be called without arguments ({error}): give lambda: {name}(…)"
        ) from error


def as_module(made: Any, what: str) -> nn.Module:
    """A module that can be used here: single precision, nothing in place that can be without."""
    if not isinstance(made, nn.Module):
        raise InputError(f"{what} must be an nn.Module, not a {type(made).__name__}")
    made = getattr(made, "_orig_mod", made).float()  # torch.compile has no second derivatives
    for part in made.modules():
        if isinstance(getattr(part, "inplace", None), bool):
            part.inplace = False  # gradients need what it overwrites
    return made


def _count(made: Any) -> str:
    if isinstance(made, (tuple, list)):
        return f"{len(made)}"
    return f"a {type(made).__name__}"


def _check_pixels(mean: Sequence[float] | None, std: Sequence[float] | None) -> None:
    for name, values in (("mean", mean), ("std", std)):
        if values is not None and len(values) != 3:
            raise InputError(f"{name} has a number for each of 3 channels, not {len(values)}")
    if std is not None and not all(value > 0 for value in std):
        raise InputError(f"std must be positive, not {tuple(std)}")
