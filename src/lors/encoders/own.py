"""Encoders of one's own: given in Python, and named by settings as ``own:NAME``.

A saved configuration always loads. Using it where the object is not there gets one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import torch
from torch import nn

from lors.config import EncoderConfig, names
from lors.encoders.own_parts import NETWORKS, OWN_IMAGES, OwnImage, OwnNetwork
from lors.encoders.own_text import OWN_TEXTS, OwnText, TextModule, own_text_part
from lors.encoders.own_tower import check_tower
from lors.encoders.trial import check_frozen, check_trainable, noise
from lors.system.content import content_digest
from lors.system.errors import InputError, suggestion
from lors.system.registry import OWN

__all__ = [
    "Encoder",
    "check_network",
    "check_own",
    "is_own",
    "network_key",
    "own_digests",
    "own_network",
]


@dataclass(frozen=True)
class Encoder:
    """What sees images and reads texts: by name, or objects of one's own.

    What is not given is as in the preset. A module keeps its weights: every network starts from a
    copy of it as it is now. A function that makes a module draws new weights for each seed; in
    scope heads, where the trunk is frozen, once.

    >>> Encoder(image="resnet18", scope="heads").settings()
    {'encoder.image': 'resnet18', 'encoder.scope': 'heads'}
    >>> flat = Encoder(image=nn.Flatten(), image_size=8)
    >>> flat.settings()["encoder.image"].startswith("own:")
    True

    Args:
        image: a timm name; a module of normalised pixels, (m, 3, size, size) to features (m, f) or
            a feature map (m, f, h, w), which is averaged; or a function that makes one.
        image_weights: of a named trunk: ``"hub"``, a safetensors file, or ``"none"``.
        image_size: side of the images in pixels.
        mean: of the pixels that an image module of one's own expects, in [0, 1] per channel;
            default: what the module says, as timm's do, or ImageNet's.
        std: likewise.
        image_head: from features into the joint space: a name in ``lors.config.names.HEADS``.
        text: a name such as ``"transformers:NAME"``; a function of a list of captions that returns
            an array (C, d); a table {caption: vector}; or, with ``tokenize``, a module of token
            ids, (m, L) to (m, d).
        tokenize: a function of a list of captions that returns token ids (C, L), padded with 0.
        text_weights: of a named trunk: ``"pretrained"`` or ``"none"``.
        text_pooling: of a named trunk: ``"auto"``, ``"cls"`` or ``"mean"``.
        text_dim: of the trunk ``"lsa"``.
        text_length: scope all: tokens per caption.
        text_head: likewise.
        embed_dim: size of the joint space.
        temperature: τ.
        scope: ``"heads"``, ``"image"`` or ``"all"``: which parts train. A text module trains in
            scope all: synthetic texts then enter it in the place of its nn.Embedding.
        space: ``"pixels"`` or ``"features"``: what a synthetic image is.
        standardise: whether frozen features are centred and scaled.
        network: what trains, instead of heads of ours: see ``own_network``.
    """

    image: str | nn.Module | Callable[[], nn.Module] | None = None
    image_weights: str | None = None
    image_size: int | None = None
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    image_head: str | None = None
    text: str | nn.Module | Callable[[list[str]], Any] | Mapping[str, Any] | None = None
    tokenize: Callable[[list[str]], Any] | None = None
    text_weights: str | None = None
    text_pooling: str | None = None
    text_dim: int | None = None
    text_length: int | None = None
    text_head: str | None = None
    embed_dim: int | None = None
    temperature: float | None = None
    scope: str | None = None
    space: str | None = None
    standardise: bool | None = None
    network: str | Callable[[], tuple[nn.Module, nn.Module]] | None = None

    def settings(self) -> dict[str, Any]:
        """The settings that say this, by dotted name; objects are kept under the names they get.

        Raises:
            InputError: an object is not what it must be.
        """
        for name, known in (
            ("scope", ("heads", "image", "all")),
            ("space", ("pixels", "features")),
        ):
            value = getattr(self, name)
            if value not in (None, *known):
                raise InputError(f"unknown {name} {value!r}{suggestion(str(value), known)}")
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        mean, std, tokenize = (found.pop(name) for name in ("mean", "std", "tokenize"))
        if callable(self.network):
            found["network"] = own_network(self.network, mean, std)
        if self.image is None or isinstance(self.image, str):
            if (mean or std) and not callable(self.network):
                raise InputError("mean and std are for an image module of your own")
        else:
            if self.image_weights is not None:
                raise InputError("image_weights is for names: load them into your image module")
            part = OwnImage(self.image, mean, std)
            found |= {"image": OWN_IMAGES.give(part, part.digest), "image_weights": "none"}
        if self.text is None or isinstance(self.text, str):
            if tokenize is not None:
                raise InputError("tokenize is for a text module of your own: give text=, too")
        else:
            text = own_text_part(self.text, tokenize)
            found["text"] = OWN_TEXTS.give(text, text.digest)
        return {f"encoder.{name}": value for name, value in found.items() if value is not None}


def own_network(
    factory: Callable[[], tuple[nn.Module, nn.Module]],
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> str:
    """The name, for ``encoder.network``, of a function that makes all that trains.

    >>> own_network(lambda: (nn.Linear(8, 4), nn.Linear(6, 4))).startswith("own:")
    True

    Args:
        factory: returns an image module and a text module with outputs of one size, each call with
            new weights. In scope heads the image module takes frozen features or given embeddings
            (m, f), else normalised pixels (m, 3, size, size); the text module takes text embeddings
            (m, d).
        mean: of the pixels that the image module expects, as for ``Encoder``.
        std: likewise.
    """
    part = OwnNetwork(factory, mean, std)
    return NETWORKS.give(part, part.digest)


def is_own(name: str | None) -> bool:
    """Whether a setting names something that was given in Python."""
    return name is not None and name.startswith(OWN)


def network_key(name: str, size: int) -> str:
    """In the place of an image trunk's key, where a network sees pixels."""
    return f"{name}|{NETWORKS.choose(name).digest}|{size}"


def own_digests(config: EncoderConfig) -> dict[str, str]:
    """What of a configuration's trainable parts no name tells: the content of those given."""
    found = {}
    if config.network is not None:
        return {"network": NETWORKS.choose(config.network).digest}
    for head in ("image_head", "text_head"):
        name = getattr(config, head)
        if names.HEADS.is_own(name):
            found[head] = f"{name}|{content_digest(names.HEADS[name])}"
    return found


def check_own(config: EncoderConfig, size: int) -> None:
    """Refuse trunks that are not here or cannot be used, before any data is read.

    Raises:
        InputError: one sentence on what is wrong, and how to change it.
    """
    if is_own(config.image):
        _check_image(config.image, config.scope, config.space, size)
    if is_own(config.text):
        _check_text(config.text, config)
    if config.network is not None:
        NETWORKS.choose(config.network)


def _check_image(name: str, scope: str, space: str, size: int) -> None:
    part, what = OWN_IMAGES.choose(name), f"the image trunk {name}"
    _tried(_try_image, (part, what, scope, space, size))


def _try_image(part: OwnImage, what: str, scope: str, space: str, size: int) -> None:
    trunk, pixels = part.build(size, what), noise(3, size, size)
    if scope != "heads":
        if not any(p.requires_grad for p in trunk.parameters()):
            raise InputError(
                f"none of the parameters of {what} requires a gradient, so that it cannot train: "
                "set encoder.scope=heads"
            )
        check_trainable(trunk, pixels, what)
    elif space == "pixels":
        check_frozen(trunk.requires_grad_(False), pixels, what)


def _check_text(name: str, config: EncoderConfig) -> None:
    trunk = OwnText.build(name.removeprefix(OWN), config, [])
    if config.scope == "all":
        part = OWN_TEXTS.choose(name)
        assert isinstance(part, TextModule)
        _tried(_try_tower, (part, trunk.what, name, config.text_length))
    else:
        assert trunk.dim


def _try_tower(part: TextModule, what: str, name: str, length: int) -> None:
    trunk = OwnText(name.removeprefix(OWN))
    tower, tokens = trunk.tower(), torch.from_numpy(trunk.tokens(part.probes, length)).long()
    check_tower(tower, tokens, what)
    check_trainable(tower, tower.embed_tokens(tokens), what)


def check_network(config: EncoderConfig, features: int | None, text_dim: int) -> None:
    """Refuse a network that cannot train on what it will get.

    Args:
        config: names it.
        features: scope heads: how many the image module takes.
        text_dim: how many numbers the text module takes.

    Raises:
        InputError: one sentence on what is wrong, and how to change it.
    """
    assert config.network is not None
    part = NETWORKS.choose(config.network)
    shape = (features,) if features is not None else (3, config.size(), config.size())
    _tried(_try_network, (part, config.network, shape, text_dim))


def _try_network(part: OwnNetwork, name: str, shape: tuple[int, ...], text_dim: int) -> None:
    image, text = part.sides(pixels=len(shape) > 1)
    width = check_trainable(image, noise(*shape), f"the image module of {name}")
    check_trainable(text, noise(text_dim), f"the text module of {name}", width)


@cache
def _tried(trial: Callable[..., None], given: tuple[Any, ...]) -> None:
    """A trial that went well is not made again."""
    with torch.device("cpu"), torch.enable_grad():
        trial(*given)
