"""Checks a configuration against what exists: models, devices, sizes."""

from __future__ import annotations

import torch

from lors.config import Config, EncoderConfig
from lors.data import SOURCES
from lors.encoders.image import check_image_trunk, native_size
from lors.encoders.own import check_own
from lors.encoders.own_parts import NETWORKS
from lors.encoders.scorer import check_scorer
from lors.encoders.text import text_trunk_class, training_text
from lors.losses import LOSSES, Loss
from lors.system.devices import find_device
from lors.system.errors import InputError

__all__ = ["NO_PIXELS", "OTHER_TEXTS", "resolve", "small_budget"]

OTHER_TEXTS = (
    "the texts of this set are embeddings of another text trunk: evaluate it with the one it was "
    "made with, {!r}"
)
NO_PIXELS = "embeddings have no pixels: start from the preset 'features'"


def resolve(config: Config) -> Config:
    """Fill in what depends on names, and refuse what cannot be, before any work starts.

    Raises:
        InputError: an unknown model or device, a missing package, or parts that do not fit.
    """
    check_scorer(config.scorer)
    training_text(text_trunk_class(config.encoder.text)[0], config.encoder.scope)
    check_image_trunk(config.encoder.image, config.encoder.image_weights)
    find_device(config.device, config.dtype)
    _check_batches(config)
    if SOURCES[config.data.source].features and config.encoder.space != "features":
        raise InputError(NO_PIXELS)
    size = config.encoder.image_size or _native_size(config.encoder)
    check_own(config.encoder, size)
    encoder = config.encoder.model_copy(update={"image_size": size})
    return config.model_copy(update={"encoder": encoder})


def small_budget(pairs: int) -> int:
    """A budget that suits so few training pairs: a tenth, but 20 if that is at most half.

    >>> small_budget(40), small_budget(160), small_budget(480)
    (20, 20, 48)
    """
    return max(2, pairs // 10, min(20, pairs // 2))


def _native_size(encoder: EncoderConfig) -> int:
    if encoder.network is not None and encoder.scope != "heads":
        return NETWORKS.choose(encoder.network).native_size
    return native_size(encoder.image)


def _check_batches(config: Config) -> None:
    """Refuse batches of one pair where the loss of a single pair is always the same."""
    losses = {
        "experts.batch_size": (config.experts.batch_size, config.experts.loss),
        "matching.batch_size": (getattr(config.matching, "batch_size", None), config.loss),
        "evaluate.batch_size": (config.evaluate.batch_size, config.loss),
    }
    for setting, (size, loss) in losses.items():
        if size == 1 and not _learns_from_one(LOSSES[loss]):
            raise InputError(
                f"{setting}=1: the loss {loss} compares the pairs of a batch, and learns nothing "
                "from a batch of one: set 2 or more"
            )


def _learns_from_one(loss: Loss) -> bool:
    logits = torch.full((1, 1), 0.5, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(logits, torch.ones(1, 1)), logits)
    return bool(gradient)
