"""Trials: networks of a setting trained on a set, and the loss and rate that suit it best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lors.config import Config
from lors.config.names import PLAIN_LOSSES
from lors.encoders import DualEncoder
from lors.evaluation.expert_similarity import expert_similarity
from lors.evaluation.protocol import (
    Outcome,
    choose_epoch,
    frozen_inputs,
    measure,
    outcome,
    snapshots,
    train_on,
)
from lors.losses import LOSSES, Loss
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.memory import explaining_memory
from lors.similarity import Fixed, Identity, Similarity
from lors.system import ranks

__all__ = [
    "Tuned",
    "candidates",
    "pairs_for",
    "rates_label",
    "trial",
    "tune",
    "val_recall",
    "with_rates",
]

FACTORS = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Tuned:
    """How a set trains best.

    Args:
        loss: the name of the loss.
        rates: of the image and the text side.
        recall: what it reaches on val with them, as the mean of six.

    >>> print(Tuned("nce", (0.1, 0.1), recall=43.7))
    nce, rate 0.1
    """

    loss: str
    rates: tuple[float, float]
    recall: float

    def __str__(self) -> str:
        return f"{self.loss}, {rates_label(self.rates)}"


def trial(
    setting: Setting,
    pairs: SyntheticPairs,
    loss: Loss,
    *keys: int | str,
    inputs: Tensor | None = None,
    keep: Callable[[DualEncoder], None] = lambda network: None,
) -> Outcome:
    """What one network reaches that is trained on a set; the keys draw it.

    ``keep`` is called with the network at the epoch chosen on val.
    """
    keys = (setting.config.seed, *keys)
    model, protocol = setting.model(*keys), setting.config.evaluate
    with explaining_memory(setting.config, setting.device, "evaluate"):
        thetas = snapshots(pairs, model, loss, protocol, *keys, inputs=inputs)
        reached = outcome(model, thetas, setting.real["val"], setting.real["test"], protocol.legacy)
    keep(model)
    return reached


def val_recall(setting: Setting, pairs: SyntheticPairs) -> float:
    """The validation recall that a set reaches, for use during distillation."""
    keys, config = (setting.config.seed, "validation network"), setting.config
    with explaining_memory(config, setting.device, "evaluate"):
        model, loss, protocol = setting.model(*keys), setting.loss, config.evaluate
        if config.distill.evaluate_epoch == "chosen":
            thetas = snapshots(pairs, model, loss, protocol, *keys)
            return choose_epoch(model, thetas, setting.real["val"])[1]
        return measure(train_on(pairs, model, loss, protocol, *keys), setting.real["val"]).mean


def tune(
    setting: Setting, pairs: SyntheticPairs, own: tuple[str, tuple[float, float]] | None = None
) -> Tuned:
    """Find the rates at which a set trains best that has not learned them; it is not changed.

    Every choice of rates, and every loss where S was not learned for one, is tried with one network
    and judged on the validation split, so that no baseline is starved.

    Args:
        setting: data, networks and protocol.
        pairs: the set; ``with_rates`` gives it the rates that were found.
        own: a loss and rates that compete, too.
    """
    keys = (setting.config.seed, "tuning")
    inputs = frozen_inputs(pairs, setting.flat.model)
    losses = _losses(setting.config, pairs.similarity)
    grid = [(loss, rates) for loss in losses for rates in candidates(setting.config)]
    grid += [own] if own is not None else []

    def best_recall(choice: tuple[str, tuple[float, float]]) -> float:
        loss, rates = choice
        model, protocol = setting.model(*keys), setting.config.evaluate
        tried = with_rates(pairs, rates)
        with explaining_memory(setting.config, setting.device, "evaluate"):
            thetas = snapshots(tried, model, LOSSES[loss], protocol, *keys, inputs=inputs)
            return choose_epoch(model, thetas, setting.real["val"])[1]

    recalls = ranks.divide(grid, best_recall, setting.progress, "tune loss and rates")
    best = max(recalls)
    return Tuned(*grid[recalls.index(best)], recall=best)


def _losses(config: Config, similarity: Similarity) -> tuple[str, ...]:
    """The losses to try: all, unless S was learned for one; InfoNCE takes another S as eNCE."""
    tried = config.evaluate.tried_losses
    if isinstance(similarity, Identity):
        return tried
    if isinstance(similarity, Fixed):
        return tuple(dict.fromkeys(f"e{loss}" if loss in PLAIN_LOSSES else loss for loss in tried))
    return (config.loss,)


def pairs_for(setting: Setting, distilled: DistilledSet) -> SyntheticPairs:
    """The pairs of a set as the networks of a setting take them."""
    images, old = distilled.images_for(setting.flat.model), distilled.pairs
    pairs = SyntheticPairs(images, old.texts.detach(), old.similarity, old.rates.tolist())
    pairs = pairs.to(setting.device, setting.dtype)
    if setting.config.evaluate.similarity == "expert":
        pairs.similarity = expert_similarity(setting, pairs)
    return pairs


def with_rates(pairs: SyntheticPairs, rates: Sequence[float]) -> SyntheticPairs:
    """The same pairs, sharing their memory, with other rates; in single precision, as files are."""
    single = torch.tensor(rates, dtype=torch.float32).tolist()
    other = SyntheticPairs(pairs.images.detach(), pairs.texts.detach(), pairs.similarity, single)
    return other.to(pairs.images.device)


def rates_label(rates: Sequence[float]) -> str:
    """The rates of the two sides in words.

    >>> rates_label((0.1, 0.1)), rates_label((0.003, 1))
    ('rate 0.1', 'rates 0.003 and 1')
    """
    image, text = rates
    return f"rate {image:g}" if image == text else f"rates {image:g} and {text:g}"


def candidates(config: Config) -> list[tuple[float, float]]:
    """The same rate on both sides; and, where the experts' differ, theirs, slower and faster."""
    same = [(rate, rate) for rate in config.evaluate.tried_rates]
    if config.experts.text_rate is None:
        return same
    image, text = config.experts.rates()
    return same + [(factor * image, factor * text) for factor in FACTORS]
