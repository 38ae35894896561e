"""Text trunks from transformers: BERT, DistilBERT, CLIP's text tower, sentence-transformers, …"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lors.config import EncoderConfig
from lors.data.cache import fingerprint
from lors.errors import InputError
from lors.progress import Progress

__all__ = ["TextTower", "TransformersText"]


class TextTower(nn.Module):
    """A transformer with its pooling: tokens to one embedding.

    It takes token ids, or continuous input embeddings in their place. Its word embeddings are
    frozen: synthetic texts enter after them and could never move them.

    Args:
        model: the transformer.
        pooling: ``cls``, ``mean`` over unmasked tokens, or ``projected`` (CLIP's own).
        pad: the id of the padding token.
    """

    def __init__(self, model: nn.Module, pooling: str, pad: int) -> None:
        super().__init__()
        self.model, self.pooling, self.pad = model, pooling, pad
        self.words: nn.Module = model.get_input_embeddings()  # type: ignore[operator]
        self.words.requires_grad_(False)
        pooler = getattr(model, "pooler", None)
        if pooler is not None:
            pooler.requires_grad_(False)  # computed by BERT, but unused by any pooling here
        self.eval()

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape: (m, L) ids or (m, L, h) input embeddings -> (m, dim)"""
        continuous = tokens.is_floating_point()
        mask = torch.ones(tokens.shape[:2], dtype=torch.long, device=tokens.device)
        if not continuous:
            mask = (tokens != self.pad).long()
            mask[:, 0] = 1
        given = {"inputs_embeds" if continuous else "input_ids": tokens}
        output = self.model(attention_mask=mask, **given)
        if self.pooling == "projected":
            return output.text_embeds
        hidden = output.last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = mask[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1)


class TransformersText:
    """A frozen transformer that embeds captions.

    Args:
        name: a Hub name or a local folder.
        pooling: ``cls``, ``mean``, or ``auto``: CLIP's projection, what a sentence-transformers
            folder says, otherwise ``cls`` as in the paper.
        weights: ``pretrained``, or ``none`` to build the model from its configuration alone.
    """

    def __init__(self, name: str, pooling: str = "auto", weights: str = "pretrained") -> None:
        self.name, self.weights = name, weights
        transformers = _transformers()
        transformers.logging.disable_progress_bar()
        try:
            self._config = transformers.AutoConfig.from_pretrained(name)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise _cannot_load(name, error) from None
        is_clip = self._config.model_type in ("clip", "clip_text_model")
        self.pooling = pooling if pooling != "auto" else "projected" if is_clip else _pooling(name)
        self._pad = int(self._tokenizer.pad_token_id or 0)
        hidden = getattr(self._config, "text_config", self._config)
        self.hidden = int(hidden.hidden_size if hasattr(hidden, "hidden_size") else hidden.dim)
        projected = self.pooling == "projected"
        self.dim = int(self._config.projection_dim) if projected else self.hidden

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> TransformersText:
        return cls(name, config.text_pooling, config.text_weights)

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> TransformersText:
        return cls(header["name"], header["pooling"], header["weights"])

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"name": self.name, "pooling": self.pooling, "weights": self.weights}, {}

    @cached_property
    def fingerprint(self) -> str:
        """Of the name and, for a local folder, its files."""
        folder = Path(self.name)
        files = sorted(folder.glob("*.*")) if folder.is_dir() else []
        seen = [f"{f.name}|{f.stat().st_size}|{f.stat().st_mtime_ns}" for f in files]
        return fingerprint(self.name, self.pooling, self.weights, *seen)

    def tower(self, seed: int = 0) -> TextTower:
        """A fresh copy of the network, for training or for embedding."""
        transformers = _transformers()
        projected = self.pooling == "projected"
        auto = transformers.CLIPTextModelWithProjection if projected else transformers.AutoModel
        try:
            if self.weights == "none":
                with torch.random.fork_rng():
                    torch.manual_seed(seed)
                    text_config = getattr(self._config, "text_config", self._config)
                    build = auto._from_config if projected else auto.from_config
                    model = build(text_config if projected else self._config)
            else:
                model = auto.from_pretrained(self.name, dtype=torch.float32)
        except (OSError, ValueError) as error:
            raise _cannot_load(self.name, error) from None
        return TextTower(model, self.pooling, self._pad)

    def tokens(self, captions: Sequence[str], length: int) -> np.ndarray:
        """Token ids, cut and padded to a fixed length. Shape: (C, length), int32"""
        options = {"padding": "max_length", "truncation": True, "max_length": length}
        found = self._tokenizer(list(captions), return_tensors="np", **options)
        return found["input_ids"].astype(np.int32)

    @torch.no_grad()
    def embed(self, captions: Sequence[str], progress: Progress, batch: int = 64) -> np.ndarray:
        """Embeddings of the captions, in batches of similar length. Shape: (C, dim), float32."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        tower = self.tower().to(device)
        ids = self._tokenizer(list(captions), truncation=True)["input_ids"]
        order = np.argsort([len(row) for row in ids], kind="stable")
        embedded = np.empty((len(ids), self.dim), np.float32)
        chunks = np.array_split(order, -(-len(order) // batch))
        for chunk in progress.track(chunks, "embed captions", len(chunks)):
            rows = [{"input_ids": ids[i]} for i in chunk]
            padded = self._tokenizer.pad(rows, return_tensors="pt")["input_ids"].to(device)
            embedded[chunk] = tower(padded).float().cpu().numpy()
        return embedded


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise InputError(
            "text trunks from transformers need an extra: pip install 'lors[transformers]'"
        ) from None
    return transformers


def _pooling(name: str) -> str:
    """What a sentence-transformers folder says; the first token for any other model."""
    path = Path(name) / "1_Pooling" / "config.json"
    if path.is_file() and json.loads(path.read_text("utf-8")).get("pooling_mode_mean_tokens"):
        return "mean"
    return "cls"


def _cannot_load(name: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0]
    return InputError(
        f"cannot load the text trunk {name!r} ({reason}): give the path of a local folder as "
        "encoder.text=transformers:PATH, or a name of the Hub while online"
    )
