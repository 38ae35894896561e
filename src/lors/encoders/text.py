"""Text trunks: captions in, frozen embeddings out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from torch import Tensor, nn

from lors.config import EncoderConfig, names
from lors.files import artifacts
from lors.files.cache import cached_array, fingerprint
from lors.system.errors import InputError
from lors.system.progress import Progress
from lors.system.registry import Registry

__all__ = [
    "TEXT_TRUNKS",
    "TextTrunk",
    "TrainableText",
    "build_text_trunk",
    "embed_once",
    "kind_of",
    "restore_text_trunk",
    "text_size",
    "text_trunk_class",
    "training_text",
]


class TextTrunk(Protocol):
    """A frozen text encoder.

    ``dim`` is the size of an embedding and ``fingerprint`` changes when the embeddings do.
    ``fitted`` says whether it is made from the training captions, ``trains`` whether it can train
    along in scope ``all``; see ``TrainableText``.
    """

    fitted: ClassVar[bool]
    trains: ClassVar[bool]

    @property
    def dim(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """A JSON header and tensors from which the class's ``restore`` makes it again."""
        ...


class TrainableText(TextTrunk, Protocol):
    """A text encoder that can also train along, in scope ``all``."""

    def tokens(self, captions: Sequence[str], length: int) -> np.ndarray:
        """What its network takes of the captions. Shape: (C, length)"""
        ...

    def tower(self) -> nn.Module:
        """A fresh copy of its network."""
        ...

    def without_weights(self) -> TrainableText:
        """The same network from its configuration alone, for weights that come from elsewhere."""
        ...


TEXT_TRUNKS: Registry[Any] = names.TEXT_TRUNKS

KNOWN_SIZES = {
    "bert": 768,
    "distilbert": 768,
    "clip": 512,
    "transformers:sentence-transformers/all-MiniLM-L6-v2": 384,
}
"""Of the text trunks that presets name, known without loading them."""


def text_trunk_class(text: str) -> tuple[Any, str]:
    """``"transformers:NAME"`` to the class and the name.

    Raises:
        InputError: there is no such text trunk, or it is not written like this.
    """
    names.check_text_trunk(text)
    kind, _, name = names.TEXT_ALIASES.get(text, text).partition(":")
    trunk = TEXT_TRUNKS[kind]
    if not hasattr(trunk, "build"):
        raise InputError(f"encoder.text={text!r} comes with data, and cannot be asked for")
    if trunk.fitted == bool(name):
        form = kind if trunk.fitted else f"{kind}:NAME"
        raise InputError(f"encoder.text={text!r} is not of the form {form}")
    return trunk, name


def training_text(trunk: TextTrunk, scope: str) -> TrainableText | None:
    """The text trunk as what trains along, in scope ``all``; None in other scopes.

    Raises:
        InputError: it cannot train.
    """
    if scope != "all":
        return None
    if not trunk.trains:
        raise InputError(
            "encoder.scope=all trains the text trunk: set encoder.text=transformers:NAME"
        )
    return cast(TrainableText, trunk)


def build_text_trunk(config: EncoderConfig, captions: Sequence[str]) -> TextTrunk:
    """The text trunk of a configuration, fitted on the training captions if it is one that fits."""
    trunk, name = text_trunk_class(config.text)
    return trunk.build(name, config, captions)


def text_size(config: EncoderConfig) -> int:
    """The size of an embedding, before there are captions to fit a text trunk on."""
    if text_trunk_class(config.text)[0].fitted:
        return config.text_dim
    return KNOWN_SIZES.get(config.text) or build_text_trunk(config, []).dim


def restore_text_trunk(
    kind: str, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
) -> TextTrunk:
    """The trunk that ``state`` was asked of; ``kind`` is its name in ``TEXT_TRUNKS``."""
    return TEXT_TRUNKS.choose(kind).restore(config, header, tensors)


def kind_of(trunk: TextTrunk) -> str:
    """The name of a trunk's class in ``TEXT_TRUNKS``."""
    return next(kind for kind, cls in TEXT_TRUNKS.items() if type(trunk) is cls)


def embed_once(trunk: TextTrunk, captions: Sequence[str], progress: Progress) -> np.ndarray:
    """The captions' embeddings, memory-mapped from the cache. Shape: (C, dim), float32."""
    path = artifacts.home() / "texts" / f"{fingerprint(trunk.fingerprint, *captions)}.npy"
    return cached_array(path, lambda: trunk.embed(captions, progress), progress)
