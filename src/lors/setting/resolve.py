"""Checks a configuration against what exists: names, devices, sizes."""

from __future__ import annotations

import torch

from lors.config import Config
from lors.data import SOURCES
from lors.encoders.heads import HEADS
from lors.encoders.image import check_image_trunk, native_size
from lors.encoders.scorer import check_scorer
from lors.encoders.text import check_text_trunk
from lors.losses import LOSSES, Loss
from lors.matching import MATCHERS
from lors.matching.meta_gradient import META_GRADIENTS
from lors.matching.second_order import DERIVATIVES
from lors.selection import SELECTIONS
from lors.similarity import SIMILARITIES
from lors.starts import INITIALS
from lors.system import ranks
from lors.system.errors import InputError, choose
from lors.trackers import check_trackers

__all__ = ["find_device", "resolve"]


def resolve(config: Config) -> Config:
    """Fill in what depends on names, and refuse what cannot be, before any work starts.

    Raises:
        InputError: an unknown name or device, or a missing package.
    """
    choose(SOURCES, config.data.source, "data source")
    choose(HEADS, config.encoder.image_head, "head")
    choose(HEADS, config.encoder.text_head, "head")
    for loss in (config.loss, *config.evaluate.tried_losses):
        choose(LOSSES, loss, "loss")
    choose(MATCHERS, config.matching.kind, "matcher")
    choose(META_GRADIENTS, config.matching.gradient, "meta-gradient")
    choose({"auto": None, **DERIVATIVES}, config.matching.derivative, "derivative")
    choose(INITIALS, config.distill.init, "initialiser")
    if config.selection.kind is not None:
        choose(SELECTIONS, config.selection.kind, "selection")
    check_trackers(config.trackers)
    check_scorer(config.scorer)
    check_text_trunk(config.encoder.text)
    check_image_trunk(config.encoder.image, config.encoder.image_weights)
    find_device(config.device)
    choose(SIMILARITIES, config.similarity.kind, "similarity")
    _check_batches(config)
    if config.data.source == "embeddings" and config.encoder.space != "features":
        raise InputError("embeddings have no pixels: start from the preset 'features'")
    size = config.encoder.image_size or native_size(config.encoder.image)
    encoder = config.encoder.model_copy(update={"image_size": size})
    return config.model_copy(update={"encoder": encoder})


def _check_batches(config: Config) -> None:
    """Refuse batches of one pair where the loss of a single pair is always the same."""
    losses = {
        "experts.batch_size": (config.experts.batch_size, "nce"),
        "matching.batch_size": (config.matching.batch_size, config.loss),
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


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is a GPU if there is one, for each rank its own.

    Raises:
        InputError: it is not available here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks.size() > 1:
        name = f"cuda:{ranks.local()}"
    try:
        torch.zeros(1, device=name).item()  # some devices exist but hold no numbers
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device {name!r} is not available here: set device=auto or device=cpu"
        ) from None
