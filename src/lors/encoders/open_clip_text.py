"""Text towers of open_clip models."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from lors.config import EncoderConfig
from lors.encoders.weights import check_width, content_digest, not_downloaded, refuse_pickle
from lors.files.cache import fingerprint
from lors.files.headers import NamedTrunk
from lors.system.errors import InputError, out_of_memory, suggestion
from lors.system.hub import hub_or_cache
from lors.system.progress import Progress

__all__ = ["OpenClipText"]


class OpenClipText:
    """The frozen text tower of an open_clip model.

    Args:
        name: ``ARCHITECTURE/TAG``, e.g. ``ViT-B-32/laion2b_s34b_b79k``; the tag may be the path of
            a safetensors file.
        weights: ``pretrained``, or ``none`` for an untrained tower.
    """

    fitted: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def __init__(self, name: str, weights: str = "pretrained") -> None:
        self.name, self.weights = name, weights
        self._architecture, _, self._tag = name.partition("/")

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> OpenClipText:
        cls.check(name, config.text_weights)
        return cls(name, config.text_weights)

    @staticmethod
    def check(name: str, weights: str = "pretrained") -> None:
        """Refuse a model that open_clip does not know, or one without its tag."""
        architecture, _, tag = name.partition("/")
        known = _open_clip().list_models()
        if architecture not in known:
            near = suggestion(architecture, known)
            raise InputError(f"unknown open_clip model {architecture!r}{near}")
        if weights == "pretrained" and not tag:
            raise InputError(f"open_clip:{name} needs a tag, e.g. open_clip:{name}/openai")

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        header = {"name": self.name, "weights": self.weights}
        return {**header, "dim": self.dim, "fingerprint": self.fingerprint}, {}

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> OpenClipText:
        saved = NamedTrunk.model_validate(header)
        trunk = cls(saved.name, saved.weights)
        trunk.dim, trunk.fingerprint = saved.dim, saved.fingerprint
        return trunk

    @cached_property
    def model(self) -> Any:
        pretrained = self._tag if self.weights == "pretrained" else None
        clip = _open_clip()
        published = pretrained and clip.get_pretrained_cfg(self._architecture, pretrained)
        try:
            with hub_or_cache() if published else nullcontext(True) as answers:
                if pretrained is not None:
                    _refuse_pickle(self._architecture, pretrained)
                with torch.random.fork_rng():
                    torch.manual_seed(0)
                    model = clip.create_model(self._architecture, pretrained=pretrained)
        except (OSError, RuntimeError, ValueError, SafetensorError) as error:
            if out_of_memory(error):
                raise
            if not answers:
                raise not_downloaded(f"open_clip:{self.name}") from None
            raise InputError(f"cannot load the open_clip model {self.name!r}: {error}") from None
        return model.eval()

    @cached_property
    def _tokenizer(self) -> Any:
        return _open_clip().get_tokenizer(self._architecture)

    @cached_property
    def dim(self) -> int:
        return int(self._encode(["a"]).shape[1])

    @cached_property
    def fingerprint(self) -> str:
        path = Path(self._tag)
        content = content_digest(path).hex() if path.is_file() else self._tag
        return fingerprint("open_clip", self._architecture, content, self.weights)

    @torch.no_grad()
    def _encode(self, captions: Sequence[str]) -> Tensor:
        return (
            self.model.encode_text(self._tokenizer(list(captions)).to(_device(self.model)))
            .float()
            .cpu()
        )

    def embed(self, captions: Sequence[str], progress: Progress, batch: int = 64) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        starts = range(0, len(captions), batch)
        parts = [
            self._encode(captions[start : start + batch])
            for start in progress.track(starts, "embed captions", len(starts))
        ]
        embedded = torch.cat(parts).numpy()
        check_width(embedded.shape[1], self.dim, self.name)
        return embedded


def _refuse_pickle(architecture: str, tag: str) -> None:
    """Refuse weights for which open_clip would fall back to pickled ones."""
    open_clip = _open_clip()
    published = open_clip.get_pretrained_cfg(architecture, tag)
    file = str(open_clip.download_pretrained(published)) if published else tag
    if published or Path(tag).is_file():
        refuse_pickle(file, f"open_clip:{architecture}/{tag}")


def _device(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device


def _open_clip() -> Any:
    try:
        import open_clip
    except ImportError:
        raise InputError(
            "models of open_clip need an extra: pip install 'lors[open_clip]'"
        ) from None
    return open_clip
