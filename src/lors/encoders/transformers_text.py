"""Text trunks from transformers: BERT, DistilBERT, CLIP's text tower, sentence-transformers, …"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lors.config import EncoderConfig
from lors.encoders.weights import check_width, content_digest, not_downloaded
from lors.files.cache import fingerprint
from lors.files.headers import NamedTrunk
from lors.system.errors import InputError, LorsError, out_of_memory
from lors.system.hub import hub_or_cache, on_hub
from lors.system.progress import Progress

__all__ = ["TextTower", "TransformersText", "library"]


class TextTower(nn.Module):
    """A transformer with its pooling: tokens to one embedding.

    It takes token ids, or continuous input embeddings in their place, where a row of zeros is
    padding. Its word embeddings are frozen: synthetic texts enter after them and could never move
    them.

    Args:
        model: the transformer.
        pooling: ``cls``, ``mean`` over unmasked tokens, or ``projected`` (CLIP's own).
        pad: the id of the padding token.
        end: the id of the token that ends a text, which may be the same.
    """

    def __init__(self, model: nn.Module, pooling: str, pad: int, end: int | None = None) -> None:
        super().__init__()
        self.model, self.pooling, self.pad = model, pooling, pad
        self.end_pads = pad == end
        self.words: nn.Module = model.get_input_embeddings()  # type: ignore[operator]
        self.words.requires_grad_(False)
        pooler = getattr(model, "pooler", None)
        if pooler is not None:
            pooler.requires_grad_(False)  # computed by BERT, but unused by any pooling here
        self.eval()

    def mask(self, tokens: Tensor) -> Tensor:
        """Which tokens count. Shape: (m, L) or (m, L, h) -> (m, L)"""
        if tokens.is_floating_point():
            return (tokens.detach() != 0).any(-1)
        pads = tokens == self.pad
        mask = ~pads
        if self.end_pads:  # CLIP pads with the token that ends the text: the first one counts
            mask |= pads & (pads.cumsum(1) == 1)
        return mask

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """The continuous inputs that stand for token ids. Shape: (m, L) -> (m, L, h)"""
        return self.words(tokens) * self.mask(tokens)[:, :, None]

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape: (m, L) ids or (m, L, h) input embeddings -> (m, dim)"""
        mask = self.mask(tokens)
        given = {"inputs_embeds" if tokens.is_floating_point() else "input_ids": tokens}
        output = self.model(attention_mask=mask.long(), **given)
        if self.pooling == "projected":
            return output.text_embeds
        hidden = output.last_hidden_state
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = mask[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)


class TransformersText:
    """A frozen transformer that embeds captions; its files are read when they are first needed.

    Args:
        name: a Hub name or a local folder.
        pooling: ``cls``, ``mean``, or ``auto``: CLIP's projection, what a sentence-transformers
            folder says, otherwise ``cls`` as in the paper.
        weights: ``pretrained``, or ``none`` to build the model from its configuration alone.
    """

    fitted: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def __init__(self, name: str, pooling: str = "auto", weights: str = "pretrained") -> None:
        self.name, self.weights = name, weights
        self._asked = pooling

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> TransformersText:
        trunk = cls(name, config.text_pooling, config.text_weights)
        trunk.check(config)
        return trunk

    def check(self, config: EncoderConfig) -> None:
        """Refuse what this model cannot do."""
        if self._is_clip and (self.pooling != "projected" or config.scope == "all"):
            raise InputError(
                f"{self.name!r} is a CLIP model: use encoder.text_pooling=auto, and scope heads or "
                "image"
            )
        longest = getattr(self._config, "max_position_embeddings", config.text_length)
        if config.scope == "all" and config.text_length > longest:
            raise InputError(
                f"{self.name!r} reads at most {longest} tokens: lower encoder.text_length"
            )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        header = {"name": self.name, "pooling": self.pooling, "weights": self.weights}
        return {**header, "dim": self.dim, "fingerprint": self.fingerprint}, {}

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> TransformersText:
        saved = NamedTrunk.model_validate(header)
        trunk = cls(saved.name, saved.pooling, saved.weights)
        trunk.dim, trunk.fingerprint = saved.dim, saved.fingerprint
        return trunk

    @cached_property
    def _config(self) -> Any:
        return self._load("AutoConfig")

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer")

    def _load(self, kind: str, **options: Any) -> Any:
        """Read a part of the model with one of transformers' classes; none of its code is run."""
        part = getattr(library(), kind)
        with _loading(self.name):
            return part.from_pretrained(self.name, trust_remote_code=False, **options)

    @property
    def _is_clip(self) -> bool:
        return self._config.model_type in ("clip", "clip_text_model")

    @cached_property
    def pooling(self) -> str:
        if self._asked != "auto":
            return self._asked
        return "projected" if self._is_clip else _pooling(self.name)

    @cached_property
    def dim(self) -> int:
        text = getattr(self._config, "text_config", self._config)
        with _loading(self.name):
            if self.pooling == "projected":
                return int(self._config.projection_dim)
            return int(text.hidden_size if hasattr(text, "hidden_size") else text.dim)

    @cached_property
    def fingerprint(self) -> str:
        """Of the content of a local folder, wherever it lies, or of the Hub's name."""
        folder, seen = Path(self.name), hashlib.sha256()
        for path in sorted(folder.glob("*.*")) if folder.is_dir() else []:
            if path.is_file():  # tools keep folders of their own there: .git, .cache
                seen.update(path.name.encode() + content_digest(path))
        content = seen.hexdigest() if folder.is_dir() else self.name
        return fingerprint(content, self.pooling, self.weights)

    def without_weights(self) -> TransformersText:
        """The same network from its configuration alone, for weights that come from elsewhere."""
        return TransformersText(self.name, self.pooling, "none")

    def tower(self) -> TextTower:
        """A fresh copy of the network, for training or for embedding.

        Without pretrained weights, too, every copy starts the same: synthetic texts are embeddings
        in the space of its words.
        """
        transformers = library()
        transformers.logging.disable_progress_bar()
        projected = self.pooling == "projected"
        kind = "CLIPTextModelWithProjection" if projected else "AutoModel"
        if self.weights == "pretrained":
            model = self._load(kind, dtype=torch.float32, use_safetensors=True)
        else:
            auto = getattr(transformers, kind)
            text_config = getattr(self._config, "text_config", self._config)
            with torch.random.fork_rng(), _loading(self.name):
                torch.manual_seed(0)
                model = (
                    auto._from_config(text_config) if projected else auto.from_config(self._config)
                )
        with _loading(self.name):
            pad = int(self._tokenizer.pad_token_id or 0)
            return TextTower(model, self.pooling, pad, self._tokenizer.eos_token_id)

    def tokens(self, captions: Sequence[str], length: int) -> np.ndarray:
        """Token ids, cut and padded to a fixed length. Shape: (C, length), int32"""
        options = {"padding": "max_length", "truncation": True, "max_length": length}
        with _loading(self.name):
            found = self._tokenizer(list(captions), return_tensors="np", **options)["input_ids"]
            self._check_words(int(found.max()))
        return found.astype(np.int32)

    def _check_words(self, largest: int) -> None:
        """Refuse a tokenizer that knows words which the model does not."""
        text = getattr(self._config, "text_config", self._config)
        if largest >= getattr(text, "vocab_size", largest + 1):
            raise InputError(
                f"the tokenizer of {self.name!r} gives the word {largest}, but its model knows "
                f"{text.vocab_size}: take both from one model"
            )

    @torch.no_grad()
    def embed(self, captions: Sequence[str], progress: Progress, batch: int = 64) -> np.ndarray:
        """Embeddings of the captions, in batches of similar length. Shape: (C, dim), float32."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        tower = self.tower().to(device)
        with _loading(self.name):
            ids = self._tokenizer(list(captions), truncation=True)["input_ids"]
            self._check_words(max((max(row, default=0) for row in ids), default=0))
        order = np.argsort([len(row) for row in ids], kind="stable")
        embedded = np.empty((len(ids), self.dim), np.float32)
        chunks = np.array_split(order, -(-len(order) // batch))
        for chunk in progress.track(chunks, "embed captions", len(chunks)):
            rows = [{"input_ids": ids[i]} for i in chunk]
            with _loading(self.name):
                padded = self._tokenizer.pad(rows, return_tensors="pt")["input_ids"].to(device)
                found = tower(padded).float().cpu().numpy()
            check_width(found.shape[1], self.dim, self.name)
            embedded[chunk] = found
        return embedded


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Say of which model it is what goes wrong in transformers.

    Raises:
        InputError: it is not there, or damaged.
    """
    try:
        with hub_or_cache() if on_hub(name) else nullcontext(True) as answers:
            yield
    except LorsError:
        raise
    except Exception as error:  # on damaged files, transformers and tokenizers raise anything
        if out_of_memory(error):
            raise
        if not answers:
            raise not_downloaded(repr(name)) from None
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"cannot load the text trunk {name!r} ({reason}): give the path of a local folder as "
            "encoder.text=transformers:PATH, or a name of the Hub while online"
        ) from None


def library() -> Any:
    """The package transformers.

    Raises:
        InputError: it is not installed.
    """
    try:
        import transformers
    except ImportError:
        raise InputError(
            "text trunks from transformers need an extra: pip install 'lors[transformers]'"
        ) from None
    return transformers


def _pooling(name: str) -> str:
    """What a sentence-transformers model says; the first token for any other."""
    try:
        with hub_or_cache():
            found = library().utils.cached_file(name, "1_Pooling/config.json")
    except OSError:
        return "cls"
    try:
        means = json.loads(Path(found).read_text("utf-8")).get("pooling_mode_mean_tokens")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"cannot read {str(found)!r} of {name!r}: {error!r}") from None
    return "mean" if means else "cls"
