from __future__ import annotations

from itertools import product

from lors.baselines import RATES, TUNED_LOSSES, full_data, random_pairs
from lors.evaluate import choose_epoch, measure, snapshots
from lors.losses import LOSSES
from lors.workbench import Workbench


def test_random_pairs_are_tuned_on_val_and_measured_on_test(bench: Workbench) -> None:
    outcomes, chosen = random_pairs(bench)
    protocol = bench.config.evaluate
    vals = {}
    for loss, rate in product(TUNED_LOSSES, RATES):
        keys = (bench.config.seed, "random pairs", 0)
        model, pairs = bench.model(*keys), bench.random_pairs(0, rate)
        thetas = snapshots(pairs, model, LOSSES[loss], protocol, *keys)
        vals[f"{loss}, rate {rate:g}"] = choose_epoch(model, thetas, bench.real["val"])[1]
    assert vals[chosen] == max(vals.values())
    assert outcomes[0].val == max(vals.values())
    assert len(outcomes) == protocol.seeds


def test_full_data_is_what_the_experts_reached(bench: Workbench) -> None:
    outcomes = full_data(bench)
    model = bench.model(0)
    last = bench.config.experts.epochs
    for expert, found in enumerate(outcomes):
        bench.flat.load(bench.experts().snapshots(expert, [last])[0], model)
        assert found.last == measure(model, bench.real["test"])
