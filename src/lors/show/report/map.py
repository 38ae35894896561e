"""A map of a set among the real pairs: a view of the images and a view of the texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.runs.opened import Run
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.neighbours import caption_vectors, text_vectors
from lors.show.report.album import Album, sprite
from lors.show.report.blocks import Block
from lors.system.errors import InputError
from lors.system.seeding import derive_seed

__all__ = ["PROJECTIONS", "map_block", "map_words"]

SAMPLE = 1500
"""Real pairs on a map: enough to see where they are, few enough for a small file."""
SIDE = 16
"""Where the image trunk trains, pixels are compared: averages of an image in so many rows."""
GRID = 10_000
"""Places on a map are whole numbers up to this."""
CHUNK = 256

Project = Callable[[np.ndarray], np.ndarray]


@torch.no_grad()
def map_block(run: Run, setting: Setting, count: int, album: Album, projection: str) -> Block:
    """Where the pairs of a set are among drawn real pairs, before distillation and after it.

    Args:
        run: whose pairs.
        setting: the real pairs.
        count: how many pairs of the set to show.
        album: keeps the captions.
        projection: one of ``PROJECTIONS``.
    """
    split, real = setting.pairs.splits["train"], setting.real["train"]
    rng = np.random.default_rng(derive_seed(run.config.seed, "map"))
    index = np.sort(rng.choice(len(real), min(SAMPLE, len(real)), replace=False))
    captions = np.searchsorted(real.owner, index)  # the first of each image
    model = setting.flat.model
    chunks = np.array_split(index, -(-len(index) // CHUNK))
    sets = {"after": run.distilled.pairs}
    if run.config.selection.kind is None:
        sets["before"] = run.start

    def own_images(pairs: SyntheticPairs) -> Tensor:
        images = pairs.images[:count].detach().to(setting.device, setting.dtype)
        return _pooled(model.freeze(images))

    images = _view(
        torch.cat([_pooled(real.inputs(chunk, model)) for chunk in chunks]),
        {when: own_images(pairs) for when, pairs in sets.items()},
        projection,
    )
    texts = _view(
        caption_vectors(setting, captions),
        {when: text_vectors(setting, pairs.texts[:count]) for when, pairs in sets.items()},
        projection,
    )
    words = split.captions
    return {
        "kind": "map",
        "views": [{"title": "Images", **images}, {"title": "Texts", **texts}],
        "index": index.tolist(),
        "captions": [album.caption(words[i]) for i in captions] if words else None,
        "sprite": sprite(split.images[index]) if split.images.dtype == np.uint8 else None,
    }


def map_words(block: Block, setting: Setting, projection: str) -> list[str]:
    """What a map shows, in words."""
    total, drawn = len(setting.real["train"]), len(block["index"])
    which = f"{drawn:,} drawn at random from" if drawn < total else "all of"
    compared = "features of the frozen image trunk"
    if setting.given:
        compared = "the given embeddings"
    elif setting.config.encoder.scope != "heads":
        compared = f"pixels, averaged to {SIDE} × {SIDE}"
    images, texts = (view["explained"] for view in block["views"])
    how = "UMAP of the real pairs, to which the set is added."
    if projection == "pca":
        how = (
            "the two main directions of the real pairs (PCA), which hold "
            f"{100 * images:.0f}\u00a0% of the variance of the images and "
            f"{100 * texts:.0f}\u00a0% of that of the texts."
        )
    return [
        f"Dots are real pairs, {which} the {total:,} of the training split; squares are the pairs "
        "of the set. A pair has a place in both views: point at one to see it in the other.",
        f"Images are {compared}; texts are embeddings. Each is scaled to length one, as the "
        f"cosines on this page compare them. Shown are {how}",
    ]


def _pooled(images: Tensor) -> Tensor:
    """What the trainable part takes as vectors; of pixels, averages. Shape: (m, …) -> (m, d)"""
    if images.dim() == 4:
        images = F.adaptive_avg_pool2d(images, min(SIDE, images.shape[-1]))
    return images.flatten(1)


def _view(real: Tensor, own: Mapping[str, Tensor], projection: str) -> dict[str, Any]:
    """Places of real and synthetic vectors on one square, rounded to its grid."""
    vectors = {"real": real, **own}
    unit = {
        name: F.normalize(v.float().nan_to_num(), dim=1).cpu().numpy()
        for name, v in vectors.items()
    }
    project, explained = PROJECTIONS[projection](unit["real"])
    places = {name: project(v) for name, v in unit.items()}
    every = np.concatenate(list(places.values()))
    low, high = every.min(0), every.max(0)
    scale = GRID / max(float((high - low).max()), 1e-9)
    middle = (low + high) / 2
    return {
        "explained": explained,
        **{
            name: np.rint((p - middle) * scale + GRID / 2).astype(int).ravel().tolist()
            for name, p in places.items()
        },
    }


def _pca(real: np.ndarray) -> tuple[Project, float]:
    from sklearn.decomposition import PCA

    size = min(2, *real.shape)
    fitted = PCA(size, random_state=0).fit(real)
    spread = np.nan_to_num(fitted.explained_variance_ratio_)
    padded = ((0, 0), (0, 2 - size))
    return lambda vectors: np.pad(fitted.transform(vectors), padded), float(spread.sum())


def _umap(real: np.ndarray) -> tuple[Project, float]:
    try:
        from umap import UMAP
    except ImportError:
        raise InputError("a map by UMAP needs umap-learn: pip install 'lors[map]'") from None
    fitted = UMAP(metric="cosine", random_state=0, n_jobs=1).fit(real)
    return lambda vectors: fitted.embedding_ if vectors is real else fitted.transform(vectors), 0.0


PROJECTIONS = {"pca": _pca, "umap": _umap}
"""How vectors become places: each is fitted on the real ones and then places any."""
