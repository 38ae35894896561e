"""Real photos with texts that fit them, in the eyes of the trunks as they are before any training.

A caption says of its photo what people see. An untrained head learns more from the text that lies
where the photo lies: Σ ρ_k (a_kᵀx) b_k, by the canonical directions (a_k, b_k) of what the image
trunk gives and caption embeddings; see ``canonical_texts``.
"""

from __future__ import annotations

import numpy as np
import torch

from lors.data.shards import Features
from lors.encoders.encoded import mean_captions
from lors.files.artifacts import home
from lors.files.cache import cached_array, fingerprint
from lors.selection import Candidates
from lors.setting import Setting
from lors.starts.canonical import fitting_texts
from lors.starts.material import Material, Start
from lors.system.errors import InputError

__all__ = ["fitted"]

CHUNK = 256


def fitted(material: Material) -> Start:
    """Drawn real photos, each with the text that fits it.

    Raises:
        InputError: the text trunk trains, so that texts are tokens.
    """
    setting = material.setting
    texts = setting.texts("train")
    if not np.issubdtype(texts.dtype, np.floating):
        raise InputError("distill.init=fitted needs caption embeddings: set encoder.scope=image")
    start = material.start(*(part[: material.count] for part in material.drawn))
    owner = setting.real["train"].owner
    averaged = mean_captions(texts[:], owner)
    candidates = Candidates(_trunk_features(setting), averaged, np.arange(len(averaged)))
    assert start.real is not None
    return start._replace(texts=fitting_texts(material, candidates, start.real[0]))


def _trunk_features(setting: Setting) -> Features:
    """What the image trunk gives of the training split before any training. Shape: (M, f)"""
    if setting.config.encoder.scope == "heads":
        return setting.features("train")
    real, model = setting.real["train"], setting.model("start")

    @torch.no_grad()
    def features() -> np.ndarray:
        parts = np.array_split(np.arange(len(real)), -(-len(real) // CHUNK))
        found = [model.image_features(real.inputs(part, model)) for part in parts]
        return torch.cat(found).float().cpu().numpy()

    name = fingerprint("start", setting.image_trunk, setting.pairs.splits["train"].fingerprint)
    return cached_array(home() / "features" / f"{name}.npy", features, setting.progress)
