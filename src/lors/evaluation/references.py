"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

import copy

from lors.encoders import DualEncoder, FlatModel
from lors.evaluation.protocol import Outcome, choose_epoch, outcome, outcomes
from lors.evaluation.tuning import Tuned, trial, tune, with_rates
from lors.experts import experts_of
from lors.losses import LOSSES
from lors.selection import select
from lors.setting import Setting

__all__ = ["full_data", "full_data_model", "random_pairs"]


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


def full_data_model(setting: Setting) -> DualEncoder:
    """A network trained on all real pairs: the first expert, at its best epoch on val."""
    experts = setting.config.experts.model_copy(update={"count": 1})
    one = copy.copy(setting)  # the same data and encoders, whatever has been made of them
    one.config = setting.config.model_copy(update={"experts": experts})
    store = experts_of(one)
    thetas = store.snapshots(0, store.kept(0)[1:]).to(setting.device, setting.dtype)
    model = setting.model("full data")
    best, _ = choose_epoch(model, list(thetas), setting.real["val"])
    FlatModel(model).load(thetas[best], model)
    return model


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
