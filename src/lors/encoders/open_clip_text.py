"""Text towers of open_clip models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lors.config import EncoderConfig
from lors.data.cache import fingerprint
from lors.errors import InputError, suggestion
from lors.progress import Progress

__all__ = ["OpenClipText"]


class OpenClipText:
    """The frozen text tower of an open_clip model.

    Args:
        name: ``ARCHITECTURE/TAG``, e.g. ``ViT-B-32/laion2b_s34b_b79k``; the tag may be the path of
            a weight file.
        weights: ``pretrained``, or ``none`` for an untrained tower.
    """

    def __init__(self, name: str, weights: str = "pretrained") -> None:
        self.name, self.weights = name, weights
        open_clip = _open_clip()
        architecture, _, tag = name.partition("/")
        known = open_clip.list_models()
        if architecture not in known:
            raise InputError(
                f"unknown open_clip model {architecture!r}{suggestion(architecture, known)}"
            )
        if weights == "pretrained" and not tag:
            raise InputError(
                f"encoder.text=open_clip:{name} needs a tag, e.g. open_clip:{architecture}/openai"
            )
        try:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                pretrained = tag if weights == "pretrained" else None
                self._model = open_clip.create_model(architecture, pretrained=pretrained)
        except (OSError, RuntimeError) as error:
            raise InputError(f"cannot load the open_clip model {name!r}: {error}") from None
        self._model.eval()
        self._tokenizer = open_clip.get_tokenizer(architecture)
        self.dim = int(self._encode(["a"]).shape[1])

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> OpenClipText:
        return cls(name, config.text_weights)

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> OpenClipText:
        return cls(header["name"], header["weights"])

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"name": self.name, "weights": self.weights}, {}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("open_clip", self.name, self.weights)

    @torch.no_grad()
    def _encode(self, captions: Sequence[str]) -> Tensor:
        return self._model.encode_text(self._tokenizer(list(captions))).float()

    def embed(self, captions: Sequence[str], progress: Progress, batch: int = 64) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        starts = range(0, len(captions), batch)
        parts = [
            self._encode(captions[start : start + batch])
            for start in progress.track(starts, "embed captions", len(starts))
        ]
        return torch.cat(parts).numpy()


def _open_clip() -> Any:
    try:
        import open_clip
    except ImportError:
        raise InputError(
            "text trunks from open_clip need an extra: pip install 'lors[open_clip]'"
        ) from None
    return open_clip
