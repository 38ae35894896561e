"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

from torch import Tensor

from lors.encoders import DualEncoder
from lors.evaluate import Outcome, choose_epoch, outcome, snapshots
from lors.losses import LOSSES
from lors.workbench import Workbench

__all__ = ["full_data", "random_pairs"]

RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
TUNED_LOSSES = ("nce", "wbce")


def full_data(bench: Workbench) -> list[Outcome]:
    """What the experts reached: they are the networks trained on all real pairs."""
    config, store, real = bench.config, bench.experts(), bench.real
    networks = range(min(config.evaluate.seeds, config.experts.count))
    outcomes = []
    for expert in bench.progress.track(networks, "measure full data", len(networks)):
        thetas = store.snapshots(expert, range(1, config.experts.epochs + 1))
        thetas = thetas.to(bench.device, bench.dtype)
        model, legacy = bench.model("full data"), config.evaluate.legacy
        outcomes.append(outcome(model, list(thetas), real["val"], real["test"], legacy))
    return outcomes


def random_pairs(bench: Workbench) -> tuple[list[Outcome], str]:
    """Random real pairs, another draw for each network, at their best loss and rate.

    Loss and rate are chosen on the validation split with the first draw, so that the baseline is
    not starved.

    Returns:
        The outcomes and, in words, what was chosen.
    """
    val, test = bench.real["val"], bench.real["test"]
    grid = [(loss, rate) for loss in TUNED_LOSSES for rate in RATES]
    tried = {}
    for choice in bench.progress.track(grid, "tune random pairs", len(grid)):
        model, thetas = _trained(bench, 0, *choice)
        tried[choice] = choose_epoch(model, thetas, val)[1]
    loss, rate = max(tried, key=lambda choice: tried[choice])
    draws = range(bench.config.evaluate.seeds)
    outcomes = []
    for draw in bench.progress.track(draws, "train on random pairs", len(draws)):
        model, thetas = _trained(bench, draw, loss, rate)
        outcomes.append(outcome(model, thetas, val, test, bench.config.evaluate.legacy))
    return outcomes, f"{loss}, rate {rate:g}"


def _trained(
    bench: Workbench, draw: int, loss: str, rate: float
) -> tuple[DualEncoder, list[Tensor]]:
    """A network trained on a draw of random pairs, and its snapshots."""
    keys = (bench.config.seed, "random pairs", draw)
    model, pairs = bench.model(*keys), bench.random_pairs(draw, rate)
    return model, snapshots(pairs, model, LOSSES[loss], bench.config.evaluate, *keys)
