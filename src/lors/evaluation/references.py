"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

from lors.evaluation.protocol import Outcome, outcome, outcomes
from lors.evaluation.tuning import Tuned, trial, tune, with_rates
from lors.losses import LOSSES
from lors.setting.workbench import Workbench

__all__ = ["full_data", "random_pairs"]


def full_data(bench: Workbench) -> list[Outcome]:
    """What the experts reached: they are the networks trained on all real pairs."""
    config, store, real = bench.config, bench.experts(), bench.real
    networks = range(min(config.evaluate.seeds, config.experts.count))

    def reached(expert: int) -> Outcome:
        thetas = store.snapshots(expert, store.kept(expert)[1:])
        thetas = thetas.to(bench.device, bench.dtype)
        model, legacy = bench.model("full data"), config.evaluate.legacy
        return outcome(model, list(thetas), real["val"], real["test"], legacy)

    return outcomes(networks, reached, bench.progress, "measure full data")


def random_pairs(bench: Workbench) -> tuple[list[Outcome], Tuned]:
    """Random real pairs, another draw for each network, at the loss and rate best for the first.

    Returns:
        The outcomes, and the loss and rate that were chosen.
    """
    draws = range(bench.config.evaluate.seeds)
    sets = []
    for draw in draws:
        (chosen, _), captions = bench.select("random", bench.config.distill.budget, draw)
        sets.append(bench.plain_pairs(chosen, captions))
    best = tune(bench, sets[0])

    def reached(draw: int) -> Outcome:
        pairs = with_rates(sets[draw], best.rates)
        return trial(bench, pairs, LOSSES[best.loss], "random pairs", draw)

    return outcomes(draws, reached, bench.progress, "train on random pairs"), best
