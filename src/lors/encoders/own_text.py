"""Text trunks that were given in Python: a module with its tokenizer, a function, or a table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lors.config import EncoderConfig
from lors.encoders.own_parts import as_module, copies, drawn
from lors.encoders.own_tower import OwnTower, place_of_words
from lors.encoders.trial import features_of
from lors.files.headers import TrunkSize
from lors.system.content import content_digest
from lors.system.errors import InputError, LorsError, out_of_memory
from lors.system.progress import Progress
from lors.system.registry import OWN, Registry

__all__ = ["OWN_TEXTS", "OwnText", "TextFunction", "TextModule", "TextTable", "own_text_part"]

PROBES = ["a photo of a dog", "two people on a beach"]
"""Captions that a text trunk is tried on."""
CHUNK = 256
"""Captions embedded at a time."""
Tokenize = Callable[[list[str]], Any]


@dataclass(frozen=True, eq=False)
class TextFunction:
    """Any embedder: captions in, an array of shape (C, dim) out."""

    function: Callable[[list[str]], Any]
    probes: ClassVar[list[str]] = PROBES

    @cached_property
    def digest(self) -> str:
        return content_digest(self.function)

    def embed(self, captions: list[str], what: str) -> Any:
        return _called(self.function, captions, what, "it must embed any caption")


@dataclass(frozen=True, eq=False)
class TextTable:
    """Embeddings that were computed before, by caption."""

    table: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.table:
            raise InputError("the table of text embeddings is empty: give {caption: vector, …}")

    @property
    def probes(self) -> list[str]:
        return [next(iter(self.table))]

    @cached_property
    def digest(self) -> str:
        return content_digest({k: np.asarray(v) for k, v in self.table.items()})

    def embed(self, captions: list[str], what: str) -> np.ndarray:
        missing = [caption for caption in captions if caption not in self.table]
        if missing:
            raise InputError(
                f"{what} is a table without the caption {missing[0]!r}: add its embedding, or give "
                "a function that embeds any caption"
            )
        return np.stack([np.asarray(self.table[caption]) for caption in captions])


@dataclass(frozen=True, eq=False)
class TextModule:
    """A network of token ids, with the tokenizer that makes them; 0 is padding."""

    module: nn.Module
    tokenize: Tokenize
    probes: ClassVar[list[str]] = PROBES

    @cached_property
    def digest(self) -> str:
        return content_digest(self.module, self.tokenize)

    def tokens(self, captions: list[str], what: str) -> Tensor:
        """Shape: (C, L), int64"""
        why = "tokenize must take any caption, with words that it does not know"
        found = torch.as_tensor(_called(self.tokenize, captions, f"the tokenizer of {what}", why))
        if found.dim() != 2 or len(found) != len(captions) or found.is_floating_point():
            raise InputError(
                f"the tokenizer of {what} returns {tuple(found.shape)} and {found.dtype} for "
                f"{len(captions)} captions: it must return integers of shape (captions, length), "
                "padded with 0"
            )
        return found.long()

    @cached_property
    def place(self) -> str:
        """The name of its word embeddings."""
        what = "the text trunk"
        with torch.device("cpu"):
            return place_of_words(self.module, self.tokens(PROBES, what), what)

    def embed(self, captions: list[str], what: str) -> Tensor:
        device = next((p.device for p in self.module.parameters()), torch.device("cpu"))
        return features_of(self.module, self.tokens(captions, what).to(device), what)


OWN_TEXTS: Registry[TextFunction | TextTable | TextModule] = Registry("text trunk", {})


class OwnText:
    """A text trunk that was given in Python; only its name and its size are in a file.

    Args:
        name: under which it was given, without ``own:``.
    """

    fitted: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name, self.what = name, f"the text trunk {OWN}{name}"

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> OwnText:
        trunk = cls(name)
        if config.scope == "all" and not isinstance(trunk._part, TextModule):
            raise InputError(
                f"{trunk.what} gives embeddings and cannot train: for encoder.scope=all, give a "
                "module and its tokenizer, lors.Encoder(text=…, tokenize=…)"
            )
        return trunk

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> OwnText:
        saved = _Saved.model_validate(header)
        trunk = cls(saved.name)
        trunk.dim, trunk.fingerprint = saved.dim, saved.fingerprint
        return trunk

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"name": self.name, "dim": self.dim, "fingerprint": self.fingerprint}, {}

    @property
    def _part(self) -> TextFunction | TextTable | TextModule:
        part = OWN_TEXTS.choose(f"{OWN}{self.name}")
        if self.fingerprint != part.digest:
            raise InputError(
                f"{self.what} is not the one that this was made with, which was of the same name: "
                "give that one again"
            )
        return part

    @property
    def _module(self) -> TextModule:
        part = self._part
        if not isinstance(part, TextModule):
            raise InputError(f"{self.what} is no module, and has no tokens")
        return part

    @cached_property
    def fingerprint(self) -> str:
        return OWN_TEXTS.choose(f"{OWN}{self.name}").digest

    @cached_property
    def dim(self) -> int:
        probes = self._part.probes
        with torch.device("cpu"), torch.no_grad():
            return _rows(self._part.embed(probes, self.what), len(probes), None, self.what).shape[1]

    def without_weights(self) -> OwnText:
        return self

    def tower(self) -> OwnTower:
        part = self._module
        return OwnTower(copy.deepcopy(part.module), part.place)

    def tokens(self, captions: Sequence[str], length: int) -> np.ndarray:
        """Token ids, cut and padded to a fixed length. Shape: (C, length), int32"""
        rows = np.zeros((len(captions), length), np.int32)
        for start in range(0, len(captions), CHUNK):
            found = self._module.tokens(list(captions[start : start + CHUNK]), self.what)
            kept = found[:, :length].numpy()
            rows[start : start + len(kept), : kept.shape[1]] = kept
        return rows

    @torch.no_grad()
    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        part, rows = self._part, np.empty((len(captions), self.dim), np.float32)
        starts = range(0, len(captions), CHUNK)
        with _on_the_fastest(part):
            for start in progress.track(starts, "embed captions", len(starts)):
                some = list(captions[start : start + CHUNK])
                found = _rows(part.embed(some, self.what), len(some), self.dim, self.what)
                rows[start : start + len(some)] = found
        return rows


@contextmanager
def _on_the_fastest(part: Any) -> Iterator[None]:
    """A module is on a GPU inside the block, if there is one."""
    moves = isinstance(part, TextModule) and torch.cuda.is_available()
    if moves:
        part.module.cuda()
    yield
    if moves:
        part.module.cpu()


class _Saved(TrunkSize):
    name: str


def _rows(found: Any, count: int, dim: int | None, what: str) -> np.ndarray:
    """Embeddings as an array, if they are that. Shape: (C, dim), float32"""
    array = found.detach().float().cpu().numpy() if isinstance(found, Tensor) else np.asarray(found)
    fits = (
        array.ndim == 2 and len(array) == count and array.shape[1] and dim in (None, array.shape[1])
    )
    if not fits or array.dtype.kind not in "fiu":
        wanted = f"({count}, {dim or 'size'})"
        raise InputError(
            f"{what} returns an array of shape {array.shape} and type {array.dtype} for {count} "
            f"captions, where numbers of shape {wanted} are needed"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{what} returns embeddings with NaN or infinity")
    return array.astype(np.float32)


def _called(function: Tokenize, captions: list[str], what: str, must: str) -> Any:
    try:
        return function(captions)
    except LorsError:
        raise
    except Exception as error:  # code of the caller's
        if out_of_memory(error):
            raise
        raise InputError(
            f"{what} failed on captions such as {captions[0]!r} ({type(error).__name__}: {error}): "
            f"{must}"
        ) from error


def own_text_part(text: Any, tokenize: Tokenize | None) -> TextFunction | TextTable | TextModule:
    """What was given as a text trunk, by its kind.

    Raises:
        InputError: it is none, or a module without its tokenizer.
    """
    if isinstance(text, nn.Module) or tokenize is not None:
        if tokenize is None:
            raise InputError(
                "a text module needs its tokenizer: give tokenize=, a function of captions that "
                "returns token ids of shape (captions, length), padded with 0"
            )
        made = (
            copy.deepcopy(text)
            if isinstance(text, nn.Module)
            else drawn(copies(text), "text trunk")
        )
        return TextModule(as_module(made, "the text trunk").cpu().eval(), tokenize)
    if isinstance(text, Mapping):
        return TextTable(text)
    if isinstance(text, type) and issubclass(text, nn.Module):
        raise InputError(f"{text.__name__} is a class: give a module of it, and its tokenizer")
    if not callable(text):
        raise InputError(
            "a text trunk is a name, a function of captions, a table {caption: vector}, or an "
            f"nn.Module with tokenize=, not a {type(text).__name__}"
        )
    return TextFunction(text)
