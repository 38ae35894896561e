from __future__ import annotations

from lors.baselines import RATES, TUNED_LOSSES, full_data, random_pairs
from lors.evaluate import measure, try_out
from lors.losses import LOSSES
from lors.workbench import Workbench


def test_random_pairs_are_tuned_on_val(bench: Workbench) -> None:
    outcomes, chosen = random_pairs(bench)
    real, protocol = bench.real, bench.config.evaluate
    keys = (bench.config.seed, "random pairs", 0)
    vals = {
        f"{loss}, rate {rate:g}": try_out(
            bench.random_pairs(0, rate),
            bench.model(*keys),
            LOSSES[loss],
            protocol,
            real["val"],
            real["test"],
            *keys,
        ).val
        for loss in TUNED_LOSSES
        for rate in RATES
    }
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
