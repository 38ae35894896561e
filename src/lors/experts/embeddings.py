"""The training split in a joint space, by which pairs are compared, chosen and scored."""

from __future__ import annotations

import json

import numpy as np
import torch

from lors.data.shards import Features
from lors.encoders.scorer import given_embeddings, open_clip_embeddings
from lors.experts.of_setting import experts_of
from lors.files.artifacts import home
from lors.files.cache import cached_array, fingerprint
from lors.setting import Setting

__all__ = ["expert_embeddings", "joint_features", "scorer_embeddings"]


def joint_features(setting: Setting) -> tuple[Features, Features]:
    """What pairs are compared by: frozen features, or an expert's embeddings where a trunk trains.

    Shapes: (M, f), (C, d)
    """
    if setting.config.encoder.scope == "heads":
        return setting.features("train"), setting.texts("train")
    return expert_embeddings(setting)


def scorer_embeddings(setting: Setting) -> tuple[Features, Features]:
    """The training split in the joint space of ``config.scorer``. Shapes: (M, e), (C, e)"""
    scorer, split = setting.config.scorer, setting.pairs.splits["train"]
    if scorer == "expert":
        return expert_embeddings(setting)
    if scorer == "given":
        return given_embeddings(split)
    return open_clip_embeddings(scorer, split, setting.device, setting.progress)


def expert_embeddings(setting: Setting) -> tuple[Features, Features]:
    """The training split as the first expert embeds it, cached. Shapes: (M, d), (C, d)"""
    store, real = experts_of(setting), setting.real["train"]

    def embed() -> np.ndarray:
        model = setting.model("scorer")
        theta = store.snapshots(0, [setting.config.experts.epochs])[0]
        setting.flat.load(theta.to(setting.device, setting.dtype), model)
        return torch.cat(real.embed(model)).float().cpu().numpy()

    name = fingerprint("expert", json.dumps(store.origin, sort_keys=True))
    both = cached_array(home() / "features" / f"{name}.npy", embed, setting.progress)
    return both[: len(real)], both[len(real) :]
