"""An expert's similarity of synthetic pairs, in the place of their own."""

from __future__ import annotations

import torch

from lors.experts import experts_of
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Fixed

__all__ = ["expert_similarity"]


@torch.no_grad()
def expert_similarity(setting: Setting, pairs: SyntheticPairs) -> Fixed:
    """S = σ(cos/τ) of the pairs in the joint space of the first expert, as it is at its end.

    The published code's reading of the paper's ablation 17, "CLIP similarity".

    Args:
        setting: the experts.
        pairs: as its networks take them.
    """
    model, config = setting.model("scorer"), setting.config
    theta = experts_of(setting).snapshots(0, [config.experts.epochs])[0]
    setting.flat.load(theta.to(setting.device, setting.dtype), model)
    logits = model(model.freeze(pairs.images), pairs.texts)
    return Fixed(len(pairs), logits.sigmoid()).to(setting.device, setting.dtype)
