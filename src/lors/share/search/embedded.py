"""Photos in the joint space of a retriever; what the cache knows is not encoded again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lors.data.decoded import pixels_or_error
from lors.data.pairs import Item
from lors.files.arrays import read_array, write_array
from lors.files.artifacts import home
from lors.files.cache import cache_errors
from lors.share.retriever import Retriever
from lors.system.errors import InputError
from lors.system.progress import Progress
from lors.system.threads import threaded

__all__ = ["embedded_photos"]

KEY = 16
"""Bytes that stand for the content of a photo."""
BATCH = 32


def embedded_photos(
    photos: Sequence[Item], retriever: Retriever, progress: Progress
) -> dict[int, Tensor]:
    """The photos that can be decoded, in the joint space, by place. Shape of each: (d,)

    Args:
        photos: what to embed.
        retriever: embeds them.
        progress: reports long-running work.
    """
    keys = [hashlib.blake2b(item.key.encode(), digest_size=KEY).digest() for item in photos]
    path = home() / "photos" / f"{_frozen_digest(retriever)}.npy"
    known = _read(path)
    missing = {key: place for place, key in enumerate(keys) if key not in known}
    if missing:
        new = _encoded(list(missing), [photos[p] for p in missing.values()], retriever, progress)
        if new:
            known |= new
            with cache_errors(path):
                _write(path, known)
    places = [place for place, key in enumerate(keys) if key in known]
    if not places:
        return {}
    rows = torch.from_numpy(np.stack([known[keys[place]] for place in places]))
    rows = rows.to(next(retriever.model.parameters()).device)
    with torch.no_grad():
        whole = rows if _is_whole(retriever) else retriever.model.embed_images(rows)
    return dict(zip(places, whole, strict=True))


def _is_whole(retriever: Retriever) -> bool:
    """Whether the whole image side is cached, because its trunk is trained, not shared."""
    return retriever.model.trunk is None


def _frozen_digest(retriever: Retriever) -> str:
    """Identifies what turns a photo into what is cached.

    Retrievers with the same frozen trunk share its features; heads take no time.
    """
    model, digest = retriever.model, hashlib.blake2b(digest_size=16)
    parts = [model.image] if model.trunk is None else [model.trunk, model.image_standard]
    digest.update(f"{retriever.encoder.image}|{retriever.encoder.size()}".encode())
    digest.update(f"{model.mean}|{model.std}".encode())
    for part in parts:
        for name, tensor in part.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _encoded(
    keys: Sequence[bytes], photos: Sequence[Item], retriever: Retriever, progress: Progress
) -> dict[bytes, np.ndarray]:
    """What is cached of the photos that can be decoded."""
    size, model = retriever.encoder.size(), retriever.model
    decoded = threaded(partial(pixels_or_error, size=size), photos)
    tracked = iter(progress.track(decoded, "encode photos", len(photos)))
    pairs: Iterator[tuple[bytes, np.ndarray]] = (
        (key, pixels)
        for key, pixels in zip(keys, tracked, strict=True)
        if isinstance(pixels, np.ndarray)
    )
    found: dict[bytes, np.ndarray] = {}
    while batch := list(islice(pairs, BATCH)):
        pixels = torch.from_numpy(np.stack([pixels for _, pixels in batch]))
        with torch.no_grad():
            rows = model.freeze(model.normalise(pixels.to(next(model.parameters()).device)))
            rows = model.embed_images(rows) if _is_whole(retriever) else rows
        rows = rows.float().cpu()
        found |= {key: row.numpy() for (key, _), row in zip(batch, rows, strict=True)}
    return found


def _read(path: Path) -> dict[bytes, np.ndarray]:
    """What a file of the cache holds; nothing if it is not there, or damaged."""
    try:
        table = read_array(path)
        if table.ndim != 2 or table.dtype != np.uint8 or (table.shape[1] - KEY) % 4:
            return {}
    except InputError:
        return {}
    rows = np.ascontiguousarray(table[:, KEY:]).view(np.float32)
    return {bytes(key): row for key, row in zip(table[:, :KEY], rows, strict=True)}


def _write(path: Path, known: dict[bytes, np.ndarray]) -> None:
    keys = np.frombuffer(b"".join(known), np.uint8).reshape(-1, KEY)
    rows = np.stack(list(known.values())).astype(np.float32).view(np.uint8)
    write_array(path, np.concatenate([keys, rows], axis=1))
