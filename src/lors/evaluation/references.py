"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

from lors.evaluation.protocol import Outcome, outcome, outcomes
from lors.evaluation.tuning import Tuned, trial, tune, with_rates
from lors.experts import experts_of
from lors.losses import LOSSES
from lors.selection import select
from lors.setting import Setting

__all__ = ["full_data", "random_pairs"]


def full_data(setting: Setting) -> list[Outcome]:
    """What the experts reached: they are the networks trained on all real pairs."""
    config, store, real = setting.config, experts_of(setting), setting.real
    networks = range(min(config.evaluate.seeds, config.experts.count))

    def reached(expert: int) -> Outcome:
        thetas = store.snapshots(expert, store.kept(expert)[1:])
        thetas = thetas.to(setting.device, setting.dtype)
        model, legacy = setting.model("full data"), config.evaluate.legacy
        return outcome(model, list(thetas), real["val"], real["test"], legacy)

    return outcomes(networks, reached, setting.progress, "measure full data")


def random_pairs(setting: Setting) -> tuple[list[Outcome], Tuned]:
    """Random real pairs, another draw for each network, at the loss and rate best for the first.

    Returns:
        The outcomes, and the loss and rate that were chosen.
    """
    draws = range(setting.config.evaluate.seeds)
    sets = []
    for draw in draws:
        (chosen, _), captions = select(setting, "random", setting.config.distill.budget, draw)
        sets.append(setting.plain_pairs(chosen, captions))
    best = tune(setting, sets[0])

    def reached(draw: int) -> Outcome:
        pairs = with_rates(sets[draw], best.rates)
        return trial(setting, pairs, LOSSES[best.loss], "random pairs", draw)

    return outcomes(draws, reached, setting.progress, "train on random pairs"), best
