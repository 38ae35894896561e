"""Text trunks: captions in, frozen embeddings out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from lors import artifacts
from lors.config import EncoderConfig
from lors.data.cache import fingerprint
from lors.encoders.lsa import Lsa
from lors.errors import choose

__all__ = ["TEXT_TRUNKS", "TextTrunk", "embed_once", "fit_once"]


class TextTrunk(Protocol):
    """A frozen text encoder.

    ``dim`` is the size of an embedding and ``fingerprint`` changes when the embeddings do.
    """

    dim: int

    @property
    def fingerprint(self) -> str: ...

    def embed(self, captions: Sequence[str]) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was fitted, as a JSON header and tensors; the class's ``restore`` reads it."""
        ...


TEXT_TRUNKS: dict[str, Any] = {"lsa": Lsa}


def fit_once(config: EncoderConfig, captions: Sequence[str]) -> TextTrunk:
    """The text trunk of a configuration, fitted on the training captions or read from the cache."""
    trunk = choose(TEXT_TRUNKS, config.text, "text trunk")
    key = fingerprint(config.text, str(config.text_dim), *captions)
    path = artifacts.home() / "texts" / f"{config.text}-{key}.safetensors"
    if not path.exists():
        header, tensors = trunk.fit(captions, config.text_dim).state()
        artifacts.save(path, "text trunk", header, tensors)
    restored: TextTrunk = trunk.restore(*artifacts.load(path, "text trunk"))
    return restored


def embed_once(trunk: TextTrunk, captions: Sequence[str]) -> np.ndarray:
    """The captions' embeddings, memory-mapped from the cache. Shape: (C, dim), float32."""
    path = artifacts.home() / "texts" / f"{fingerprint(trunk.fingerprint, *captions)}.npy"
    if not path.exists():
        _write(path, trunk.embed(captions))
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _write(path: Path, array: np.ndarray) -> None:
    with artifacts.writing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)
