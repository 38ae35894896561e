"""Starts: what synthetic pairs are before distillation."""

from collections.abc import Callable

from lors.config import names
from lors.experts import experts_of
from lors.selection import SELECTIONS
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.starts.material import Material, Start
from lors.starts.similarity import first_similarity
from lors.system import ranks
from lors.system.registry import Registry

__all__ = ["STARTS", "Material", "Start", "start_pairs"]

STARTS: Registry[Callable[[Material], Start]] = names.STARTS


def start_pairs(setting: Setting) -> SyntheticPairs:
    """Synthetic pairs before distillation, as many as the budget holds."""
    config = setting.config.distill
    if setting.data_parallel:
        experts_of(setting)  # which some starts need, and alone no rank could train
    with ranks.alone():  # all ranks make the same
        images, texts, real = _start(Material(setting), config.init)
    similarity = first_similarity(setting, images[0].numel() + texts[0].numel(), len(images), real)
    rates = (config.inner_rate, config.inner_text_rate or config.inner_rate)
    pairs = SyntheticPairs(images.clone(), texts.clone(), similarity, rates)
    return pairs.to(setting.device, setting.dtype)


def _start(material: Material, kind: str) -> Start:
    """That of a start, or of a selection, by name."""
    if kind in SELECTIONS:
        return material.start(*material.selected(kind))
    return STARTS.choose(kind)(material)
