"""S before distillation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.experts import scorer_embeddings
from lors.files.arrays import read_array
from lors.setting import Setting
from lors.similarity import Fixed, Similarity, build_similarity
from lors.starts.material import Real
from lors.system.errors import InputError
from lors.system.seeding import generator

__all__ = ["first_similarity"]


def first_similarity(
    setting: Setting, pair_numbers: int, count: int, real: Real | None
) -> Similarity:
    """S at the start.

    Args:
        setting: says what S is.
        pair_numbers: how many numbers a pair holds.
        count: N.
        real: the real pairs that these stand for, if for any.
    """
    config = setting.config.similarity_within(pair_numbers)
    if config.kind != "fixed":
        draw = generator(setting.config.seed, "similarity")
        built = build_similarity(config, count, draw)
        if setting.config.parts() > 1:
            built.divide(setting.config.parts())
        return built
    if config.values is not None:
        return Fixed(count, _read(config.values))
    if real is None:
        raise InputError(
            f"the scorer compares real pairs, and distill.init={setting.config.distill.init} "
            "makes others: set distill.init=real, or give similarity.values"
        )
    u, v = scorer_embeddings(setting)
    return Fixed(count, _calibrated(_unit(u[real[0]]) @ _unit(v[real[1]]).T))


def _unit(embeddings: np.ndarray) -> Tensor:
    return F.normalize(torch.from_numpy(np.array(embeddings)).float(), dim=1)


def _calibrated(cosines: Tensor) -> Tensor:
    """Cosines shifted and scaled so that pairs average 1 and non-pairs 0, as in S = I.

    A CLIP's cosines of true pairs are about 0.3; as they are, none would count as positive.
    """
    count = len(cosines)
    pairs = cosines.diagonal().mean()
    others = (cosines.sum() - cosines.diagonal().sum()) / max(1, count * (count - 1))
    if not pairs > others:
        raise InputError(
            "the scorer sees pairs no nearer to each other than non-pairs: choose another scorer, "
            "or train experts for longer"
        )
    return (cosines - others) / (pairs - others)


def _read(path: Path) -> Tensor:
    values = read_array(path)
    real = values.astype(np.float32) if values.dtype.kind in "fiu" else None
    if real is None or not np.isfinite(real).all():
        raise InputError("similarity.values must be an .npy array of finite numbers")
    return torch.from_numpy(real)
