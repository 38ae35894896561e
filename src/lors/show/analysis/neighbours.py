"""The real captions and images that synthetic ones are nearest to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.setting.workbench import Workbench
from lors.show.analysis.rows import Row

if TYPE_CHECKING:  # runs end with their nearest captions, so they import this
    from lors.runs.opened import Run

__all__ = ["Neighbours", "nearest", "nearest_captions", "nearest_images", "neighbour_rows"]

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
    return Neighbours(index.cpu().numpy(), best.cpu().numpy())


@torch.no_grad()
def nearest_captions(bench: Workbench, texts: Tensor, k: int = 1) -> Neighbours:
    """The captions of the training split whose embeddings are nearest to synthetic texts.

    Args:
        bench: the real pairs.
        texts: synthetic texts. Shape: (N, text_dim), or (N, L, d) in scope all, where the mean
            over positions is compared.
        k: how many for each text.
    """
    real, model = bench.real["train"], bench.flat.model

    def embedded(index: np.ndarray) -> Tensor:
        captions = real.captions(index, model)
        if not captions.is_floating_point():
            captions = model.text[0].embed_tokens(captions)  # type: ignore[index]
        return _vectors(captions)

    queries = _vectors(texts.detach().to(bench.device, bench.dtype))
    return nearest(queries, map(embedded, _chunks(len(real.texts))), k)


@torch.no_grad()
def nearest_images(bench: Workbench, images: Tensor, k: int = 1) -> Neighbours:
    """The images of the training split nearest to synthetic ones.

    Frozen trunks compare features; where the trunk trains, normalised pixels are compared.

    Args:
        bench: the real pairs.
        images: synthetic images. Shape: (N, …)
        k: how many for each image.
    """
    real, model = bench.real["train"], bench.flat.model
    queries = model.freeze(images.detach().to(bench.device, bench.dtype)).flatten(1)
    candidates = (real.inputs(index, model).flatten(1) for index in _chunks(len(real)))
    return nearest(queries, candidates, k)


def neighbour_rows(run: Run, k: int = 1) -> list[Row]:
    """The nearest real captions and images of every pair, before and after distillation.

    An image is told by its number in the training split and its first caption.
    """
    split, rows = run.bench.pairs.splits["train"], []
    for when, pairs in (("before", run.start), ("after", run.distilled.pairs)):
        sides = {
            "caption": nearest_captions(run.bench, pairs.texts, k),
            "image": nearest_images(run.bench, pairs.images, k),
        }
        first = np.searchsorted(split.owner, np.arange(len(split)))
        for side, found in sides.items():
            captions = found.index if side == "caption" else first[found.index]
            for pair, place in np.ndindex(found.index.shape):
                row = {"pair": pair, "when": when, "of": side, "place": place + 1}
                row |= {
                    "nearest": int(found.index[pair, place]),
                    "cosine": float(found.cosine[pair, place]),
                    "words": split.captions[captions[pair, place]] if split.captions else "",
                }
                rows.append(row)
    return sorted(rows, key=lambda row: row["pair"])


def _vectors(texts: Tensor) -> Tensor:
    return texts.mean(1) if texts.dim() == 3 else texts


def _chunks(count: int) -> list[np.ndarray]:
    return np.array_split(np.arange(count), -(-count // CHUNK))
