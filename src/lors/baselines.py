"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

from lors.evaluate import Outcome, outcome, try_out
from lors.losses import LOSSES
from lors.workbench import Workbench

__all__ = ["full_data", "random_pairs"]

RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
TUNED_LOSSES = ("nce", "wbce")


def full_data(bench: Workbench) -> list[Outcome]:
    """What the experts reached: they are the networks trained on all real pairs."""
    config, store = bench.config, bench.experts()
    outcomes = []
    networks = range(min(config.evaluate.seeds, config.experts.count))
    for expert in bench.progress.track(networks, "measure full data", len(networks)):
        thetas = store.snapshots(expert, range(1, config.experts.epochs + 1))
        snapshots = thetas.to(bench.device, bench.dtype)
        model, real = bench.model("full data"), bench.real
        outcomes.append(
            outcome(model, bench.flat, snapshots, real["val"], real["test"], config.evaluate.legacy)
        )
    return outcomes


def random_pairs(bench: Workbench) -> tuple[list[Outcome], str]:
    """Random real pairs, another draw for each network, at their best loss and rate.

    Loss and rate are chosen on the validation split with the first draw, so that the baseline is
    not starved.

    Returns:
        The outcomes and, in words, what was chosen.
    """
    seeds = bench.config.evaluate.seeds
    grid = [(loss, rate) for loss in TUNED_LOSSES for rate in RATES]
    tried = {
        (loss, rate): _try(bench, 0, loss, rate)
        for loss, rate in bench.progress.track(grid, "tune random pairs", len(grid))
    }
    loss, rate = max(tried, key=lambda choice: tried[choice].val)
    rest = bench.progress.track(range(1, seeds), "train on random pairs", seeds - 1)
    outcomes = [tried[loss, rate], *(_try(bench, draw, loss, rate) for draw in rest)]
    return outcomes, f"{loss}, rate {rate:g}"


def _try(bench: Workbench, draw: int, loss: str, rate: float) -> Outcome:
    config, real = bench.config, bench.real
    keys = (config.seed, "random pairs", draw)
    return try_out(
        bench.random_pairs(draw, rate),
        bench.model(*keys),
        LOSSES[loss],
        config.evaluate,
        real["val"],
        real["test"],
        *keys,
    )
