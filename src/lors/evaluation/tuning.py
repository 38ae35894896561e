"""Trials: networks of a setting trained on a set, and the loss and rate that suit it best."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lors.config import Config
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
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Identity
from lors.system import ranks

__all__ = ["candidates", "rates_label", "trial", "tune", "val_recall"]

FACTORS = (0.1, 0.3, 1.0, 3.0)


def trial(
    setting: Setting,
    pairs: SyntheticPairs,
    loss: Loss,
    *keys: int | str,
    inputs: Tensor | None = None,
) -> Outcome:
    """What one network reaches that is trained on a set; the keys draw it."""
    keys = (setting.config.seed, *keys)
    model, protocol = setting.model(*keys), setting.config.evaluate
    thetas = snapshots(pairs, model, loss, protocol, *keys, inputs=inputs)
    return outcome(model, thetas, setting.real["val"], setting.real["test"], protocol.legacy)


def val_recall(setting: Setting, pairs: SyntheticPairs) -> float:
    """The validation recall that a set reaches, for use during distillation."""
    keys = (setting.config.seed, "validation network")
    model = train_on(pairs, setting.model(*keys), setting.loss, setting.config.evaluate, *keys)
    return measure(model, setting.real["val"]).mean


def tune(setting: Setting, pairs: SyntheticPairs) -> str:
    """Give a set that has not learned its rates those at which it trains best.

    Every choice of rates, and for plain pairs every loss, is tried with one network and judged on
    the validation split, so that no baseline is starved.

    Args:
        setting: data, networks and protocol.
        pairs: its rates are set to the best ones.

    Returns:
        The name of the best loss.
    """
    keys = (setting.config.seed, "tuning")
    plain = isinstance(pairs.similarity, Identity)
    losses = setting.config.evaluate.tried_losses if plain else (setting.config.loss,)
    inputs = frozen_inputs(pairs, setting.flat.model)
    grid = [(loss, rates) for loss in losses for rates in candidates(setting.config)]

    def best_recall(choice: tuple[str, tuple[float, float]]) -> float:
        loss, rates = choice
        _set_rates(pairs, rates)
        model = setting.model(*keys)
        protocol = setting.config.evaluate
        thetas = snapshots(pairs, model, LOSSES[loss], protocol, *keys, inputs=inputs)
        return choose_epoch(model, thetas, setting.real["val"])[1]

    recalls = ranks.divide(grid, best_recall, setting.progress, "tune loss and rates")
    loss, rates = grid[recalls.index(max(recalls))]
    _set_rates(pairs, rates)
    return loss


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


def _set_rates(pairs: SyntheticPairs, rates: tuple[float, float]) -> None:
    pairs.rates.data.copy_(torch.tensor(rates))
