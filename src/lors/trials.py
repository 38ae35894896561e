"""Trials: networks of a workbench trained on a set, and the loss and rate that suit it best."""

from __future__ import annotations

from lors.evaluate import Outcome, choose_epoch, measure, outcome, snapshots, train_on
from lors.losses import LOSSES, Loss
from lors.similarity import Identity
from lors.synthetic import SyntheticPairs
from lors.workbench import Workbench

__all__ = ["RATES", "TUNED_LOSSES", "trial", "tune", "val_recall"]

RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
TUNED_LOSSES = ("nce", "wbce")


def trial(bench: Workbench, pairs: SyntheticPairs, loss: Loss, *keys: int | str) -> Outcome:
    """What one network reaches that is trained on a set; the keys draw it."""
    keys = (bench.config.seed, *keys)
    model, protocol = bench.model(*keys), bench.config.evaluate
    thetas = snapshots(pairs, model, loss, protocol, *keys)
    return outcome(model, thetas, bench.real["val"], bench.real["test"], protocol.legacy)


def val_recall(bench: Workbench, pairs: SyntheticPairs) -> float:
    """The validation recall that a set reaches, for use during distillation."""
    keys = (bench.config.seed, "validation network")
    model = train_on(pairs, bench.model(*keys), bench.loss, bench.config.evaluate, *keys)
    return measure(model, bench.real["val"]).mean


def tune(bench: Workbench, pairs: SyntheticPairs) -> str:
    """Give a set that has not learned its rates the one at which it trains best.

    Every rate, and for plain pairs every loss, is tried with one network and judged on the
    validation split, so that no baseline is starved.

    Args:
        bench: data, networks and protocol.
        pairs: its rates are set to the best one.

    Returns:
        The name of the best loss.
    """
    keys = (bench.config.seed, "tuning")
    plain = isinstance(pairs.similarity, Identity)
    losses = TUNED_LOSSES if plain else (bench.config.loss,)
    grid = [(loss, rate) for loss in losses for rate in RATES]
    tried = {}
    for loss, rate in bench.progress.track(grid, "tune loss and rate", len(grid)):
        pairs.rates.data.fill_(rate)
        model = bench.model(*keys)
        thetas = snapshots(pairs, model, LOSSES[loss], bench.config.evaluate, *keys)
        tried[loss, rate] = choose_epoch(model, thetas, bench.real["val"])[1]
    loss, rate = max(tried, key=lambda choice: tried[choice])
    pairs.rates.data.fill_(rate)
    return loss
