"""Trials: networks of a workbench trained on a set, and the loss and rate that suit it best."""

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
from lors.setting.workbench import Workbench
from lors.similarity import Identity
from lors.system import ranks

__all__ = ["candidates", "rates_label", "trial", "tune", "val_recall"]

FACTORS = (0.1, 0.3, 1.0, 3.0)


def trial(
    bench: Workbench,
    pairs: SyntheticPairs,
    loss: Loss,
    *keys: int | str,
    inputs: Tensor | None = None,
) -> Outcome:
    """What one network reaches that is trained on a set; the keys draw it."""
    keys = (bench.config.seed, *keys)
    model, protocol = bench.model(*keys), bench.config.evaluate
    thetas = snapshots(pairs, model, loss, protocol, *keys, inputs=inputs)
    return outcome(model, thetas, bench.real["val"], bench.real["test"], protocol.legacy)


def val_recall(bench: Workbench, pairs: SyntheticPairs) -> float:
    """The validation recall that a set reaches, for use during distillation."""
    keys = (bench.config.seed, "validation network")
    model = train_on(pairs, bench.model(*keys), bench.loss, bench.config.evaluate, *keys)
    return measure(model, bench.real["val"]).mean


def tune(bench: Workbench, pairs: SyntheticPairs) -> str:
    """Give a set that has not learned its rates those at which it trains best.

    Every choice of rates, and for plain pairs every loss, is tried with one network and judged on
    the validation split, so that no baseline is starved.

    Args:
        bench: data, networks and protocol.
        pairs: its rates are set to the best ones.

    Returns:
        The name of the best loss.
    """
    keys = (bench.config.seed, "tuning")
    plain = isinstance(pairs.similarity, Identity)
    losses = bench.config.evaluate.tried_losses if plain else (bench.config.loss,)
    inputs = frozen_inputs(pairs, bench.flat.model)
    grid = [(loss, rates) for loss in losses for rates in candidates(bench.config)]

    def best_recall(choice: tuple[str, tuple[float, float]]) -> float:
        loss, rates = choice
        _set_rates(pairs, rates)
        model = bench.model(*keys)
        protocol = bench.config.evaluate
        thetas = snapshots(pairs, model, LOSSES[loss], protocol, *keys, inputs=inputs)
        return choose_epoch(model, thetas, bench.real["val"])[1]

    recalls = ranks.divide(grid, best_recall, bench.progress, "tune loss and rates")
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
