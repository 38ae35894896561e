"""The threads of a CPU that the networks of a setting are worth."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from lors.encoders.work import multiplications
from lors.setting.setting import Setting
from lors.system.cores import fitted_threads

__all__ = ["threads_of", "work_of"]

PAIRS = 16
"""The pairs of a small step."""


def threads_of(setting: Setting) -> AbstractContextManager[None]:
    """As many threads as the networks of a setting are worth, whatever is done with them.

    It depends on the networks alone, so that experts, iterations and evaluations of a setting have
    the same bits wherever they are done on a machine.
    """
    if setting.device.type != "cpu":
        return nullcontext()
    return fitted_threads(work_of(setting))


def work_of(setting: Setting) -> float:
    """Multiplications of an average convolution or linear layer on a few pairs.

    >>> from lors.setting import setting_of
    >>> tiny = lors.load_config("tiny")
    >>> larger = lors.load_config("tiny", ["encoder.image_size=32"])
    >>> work_of(setting_of(larger)) / work_of(setting_of(tiny)) > 3
    True
    """
    model, real = setting.flat.model, setting.real["val"]
    images, texts = (np.arange(min(PAIRS, len(each))) for each in (real.images, real.texts))
    size = setting.config.encoder.image_size or 0

    def run() -> None:
        if model.trunk is not None:
            parameter = next(model.parameters())
            model.trunk(torch.zeros(len(images), 3, size, size).to(parameter))
        model.embed_images(real.inputs(images, model))
        model.embed_texts(real.captions(texts, model))

    sizes = multiplications(run, model)
    return PAIRS / len(images) * sum(sizes) / max(1, len(sizes))
