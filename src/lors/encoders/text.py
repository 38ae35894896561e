"""Text trunks: captions in, frozen embeddings out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from lors.config import EncoderConfig
from lors.data.cache import cached_array, fingerprint
from lors.encoders.given_text import GivenText
from lors.encoders.lsa import Lsa
from lors.encoders.open_clip_text import OpenClipText
from lors.encoders.transformers_text import TransformersText
from lors.files import artifacts
from lors.system.errors import InputError, choose, suggestion
from lors.system.progress import Progress

__all__ = [
    "TEXT_TRUNKS",
    "TextTrunk",
    "build_text_trunk",
    "check_text_trunk",
    "embed_once",
    "kind_of",
    "restore_text_trunk",
]


class TextTrunk(Protocol):
    """A frozen text encoder.

    ``dim`` is the size of an embedding and ``fingerprint`` changes when the embeddings do.
    """

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


TEXT_TRUNKS: dict[str, Any] = {
    "lsa": Lsa,
    "transformers": TransformersText,
    "open_clip": OpenClipText,
    "given": GivenText,
}

ALIASES = {
    "bert": "transformers:bert-base-uncased",
    "distilbert": "transformers:distilbert-base-uncased",
    "clip": "transformers:openai/clip-vit-base-patch32",
}
"""The paper's names."""


def _kind(text: str) -> tuple[Any, str]:
    """``"transformers:NAME"`` to the class and the name."""
    kind, _, name = ALIASES.get(text, text).partition(":")
    buildable = {k: trunk for k, trunk in TEXT_TRUNKS.items() if hasattr(trunk, "build")}
    if kind not in buildable:
        known = [*buildable, *ALIASES]
        raise InputError(f"unknown text trunk {text!r}{suggestion(kind, known)}")
    if (kind == "lsa") == bool(name):
        raise InputError(f"encoder.text={text!r} is not of the form lsa or {kind}:NAME")
    return buildable[kind], name


def check_text_trunk(text: str) -> None:
    """Refuse an unknown kind before any work starts."""
    _kind(text)


def build_text_trunk(config: EncoderConfig, captions: Sequence[str]) -> TextTrunk:
    """The text trunk of a configuration, fitted on the training captions if it is one that fits."""
    trunk, name = _kind(config.text)
    return trunk.build(name, config, captions)


def restore_text_trunk(
    kind: str, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
) -> TextTrunk:
    """The trunk that ``state`` was asked of; ``kind`` is its name in ``TEXT_TRUNKS``."""
    return choose(TEXT_TRUNKS, kind, "text trunk").restore(config, header, tensors)


def kind_of(trunk: TextTrunk) -> str:
    """The name of a trunk's class in ``TEXT_TRUNKS``."""
    return next(kind for kind, cls in TEXT_TRUNKS.items() if type(trunk) is cls)


def embed_once(trunk: TextTrunk, captions: Sequence[str], progress: Progress) -> np.ndarray:
    """The captions' embeddings, memory-mapped from the cache. Shape: (C, dim), float32."""
    path = artifacts.home() / "texts" / f"{fingerprint(trunk.fingerprint, *captions)}.npy"
    return cached_array(path, lambda: trunk.embed(captions, progress), progress)
