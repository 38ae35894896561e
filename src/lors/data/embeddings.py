"""Embeddings that the user already has: no images, no captions, no trunks.

Two files below the root, .npy or .safetensors (its only tensor, or the one named like the key):
``images`` of shape (M, f), and ``texts`` of shape (M, d) or, with several captions per image,
(M, captions, d). Row i of one belongs to row i of the other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from lors.config import DataConfig
from lors.data.arrays import read_array
from lors.data.cache import fingerprint
from lors.data.files import below, root_folder
from lors.data.pairs import Pairs, Split
from lors.data.splitting import split_indices
from lors.errors import InputError

__all__ = ["load_embeddings"]


def load_embeddings(config: DataConfig) -> Pairs:
    """The embeddings, with val and test held out by a seed."""
    root = root_folder(config)
    arrays, stamps = {}, []
    for side in ("images", "texts"):
        name = config.annotations.get(side)
        if name is None:
            raise InputError(f"data source 'embeddings' needs data.annotations.{side}, a file")
        path = below(root, name, f"data.annotations.{side}")
        arrays[side] = _read(path, side)
        stamps.append(f"{name}|{path.stat().st_size}|{path.stat().st_mtime_ns}")
    images, texts = arrays["images"], arrays["texts"]
    if images.ndim != 2 or texts.ndim not in (2, 3) or len(images) != len(texts):
        raise InputError(
            f"image embeddings {images.shape} and text embeddings {texts.shape} do not fit: give "
            "(M, f) and (M, d) or (M, captions, d)"
        )
    if texts.ndim == 2:
        texts = texts[:, None]
    chosen = split_indices({"train": len(images)}, config)
    return Pairs(
        fingerprint(*stamps, repr(config.holdout), repr(config.seed), repr(config.pairs)),
        {
            name: _split(images, texts, [row for _, row in rows], fingerprint(name, *stamps))
            for name, rows in chosen.items()
        },
    )


def _split(images: np.ndarray, texts: np.ndarray, rows: list[int], key: str) -> Split:
    flat = texts[rows].reshape(-1, texts.shape[-1]).astype(np.float32)
    return Split(
        images=images[rows].astype(np.float32),
        captions=[],
        owner=np.repeat(np.arange(len(rows)), texts.shape[1]),
        fingerprint=fingerprint(key, *map(str, rows)),
        texts=flat,
    )


def _read(path: Path, side: str) -> np.ndarray:
    array = _read_tensor(path, side) if path.suffix == ".safetensors" else read_array(path)
    largest = float(np.finfo(np.float32).max)  # all becomes float32; NaN is in no range either
    real = np.issubdtype(array.dtype, np.floating) and array.size > 0
    if not real or not -largest <= float(array.min()) <= float(array.max()) <= largest:
        raise InputError(f"the embeddings {str(path)!r} must be finite floating-point numbers")
    return array


def _read_tensor(path: Path, side: str) -> np.ndarray:
    try:
        with safe_open(path, "np") as handle:
            names = list(handle.keys())
            if side not in names and len(names) != 1:
                raise InputError(f"{str(path)!r} holds {names[:5]}: name the right one {side!r}")
            array: np.ndarray = handle.get_tensor(side if side in names else names[0])
    except (OSError, ValueError, TypeError, AttributeError, SafetensorError) as error:
        raise InputError(f"cannot read the embeddings {str(path)!r}: {error}") from None
    return array
