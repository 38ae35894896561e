"""The real captions and images that synthetic ones are nearest to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.sets.synthetic import SyntheticPairs
from lors.setting.setting import Setting

__all__ = [
    "Neighbours",
    "caption_texts",
    "caption_vectors",
    "nearest",
    "nearest_captions",
    "nearest_images",
    "shown_captions",
    "text_vectors",
]

CHUNK = 1024


@dataclass(frozen=True)
class Neighbours:
    """The k nearest of each query, nearest first.

    Args:
        index: which. Shape: (n, k)
        cosine: how near. Shape: (n, k)
    """

    index: np.ndarray
    cosine: np.ndarray


def nearest(queries: Tensor, candidates: Iterable[Tensor], k: int) -> Neighbours:
    """The k candidates with the largest cosine to each query.

    Args:
        queries: Shape: (n, d)
        candidates: chunk after chunk, so that they need not fit in memory. Shape of each: (c, d)
        k: how many; fewer come back if there are fewer candidates.
    """
    queries = F.normalize(queries, dim=1)
    best = queries.new_empty(len(queries), 0)
    index = torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)
    seen = 0
    for chunk in candidates:
        cosine = queries @ F.normalize(chunk, dim=1).T
        here = torch.arange(seen, seen + len(chunk), device=queries.device)
        seen += len(chunk)
        every = torch.cat([best, cosine], 1)
        best, place = every.topk(min(k, every.shape[1]))
        index = torch.cat([index, here.expand(len(queries), -1)], 1).gather(1, place)
    return Neighbours(index.cpu().numpy(), best.float().cpu().numpy())


@torch.no_grad()
def nearest_captions(setting: Setting, texts: Tensor, k: int = 1) -> Neighbours:
    """The captions of the training split whose embeddings are nearest to synthetic texts.

    Args:
        setting: the real pairs.
        texts: synthetic texts. Shape: (N, text_dim), or (N, L, d) in scope all, where the mean
            over positions is compared.
        k: how many for each text.
    """
    chunks = _chunks(len(setting.real["train"].texts))
    candidates = (caption_vectors(setting, index) for index in chunks)
    return nearest(text_vectors(setting, texts), candidates, k)


@torch.no_grad()
def nearest_images(setting: Setting, images: Tensor, k: int = 1) -> Neighbours:
    """The images of the training split nearest to synthetic ones.

    Frozen trunks compare features; where the trunk trains, normalised pixels are compared.

    Args:
        setting: the real pairs.
        images: synthetic images. Shape: (N, …)
        k: how many for each image.
    """
    real, model = setting.real["train"], setting.flat.model
    queries = model.freeze(images.detach().to(setting.device, setting.dtype)).flatten(1)
    candidates = (real.inputs(index, model).flatten(1) for index in _chunks(len(real)))
    return nearest(queries, candidates, k)


def caption_vectors(setting: Setting, index: np.ndarray) -> Tensor:
    """Captions of the training split, as ``text_vectors`` gives synthetic texts. Shape: (m, d)"""
    return _vectors(caption_texts(setting, index))


@torch.no_grad()
def caption_texts(setting: Setting, index: np.ndarray) -> Tensor:
    """Captions of the training split as synthetic texts are. Shape: (m, text_dim) or (m, L, d)"""
    model = setting.flat.model
    captions = setting.real["train"].captions(index, model)
    if not captions.is_floating_point():
        captions = model.text[0].embed_tokens(captions)  # type: ignore[index]
    return captions


def text_vectors(setting: Setting, texts: Tensor) -> Tensor:
    """Synthetic texts as one vector each. Shape: (N, text_dim) or (N, L, d) -> (N, d)"""
    return _vectors(texts.detach().to(setting.device, setting.dtype))


def _vectors(texts: Tensor) -> Tensor:
    return texts.mean(1) if texts.dim() == 3 else texts


def _chunks(count: int) -> list[np.ndarray]:
    return np.array_split(np.arange(count), -(-count // CHUNK))


def shown_captions(setting: Setting, pairs: SyntheticPairs) -> list[str]:
    """The nearest caption of each synthetic text in words; none where the words are not known."""
    words = setting.pairs.splits["train"].captions
    if not words:
        return []
    found = nearest_captions(setting, pairs.texts)
    return [words[int(index)] for index in found.index[:, 0]]
