from __future__ import annotations

from itertools import product

from lors.evaluation.protocol import choose_epoch, measure, snapshots
from lors.evaluation.references import full_data, random_pairs
from lors.evaluation.tuning import Tuned, trial
from lors.experts import experts_of
from lors.losses import LOSSES
from lors.selection import select
from lors.setting import Setting


def test_random_pairs_are_tuned_on_val_and_drawn_anew_for_each_network(bench: Setting) -> None:
    outcomes, chosen = random_pairs(bench)
    protocol, budget = bench.config.evaluate, bench.config.distill.budget
    draws = [select(bench, "random", budget, draw) for draw in range(protocol.seeds)]
    sets = [bench.plain_pairs(images, captions) for (images, _), captions in draws]
    vals = {}
    for loss, rate in product(protocol.tried_losses, protocol.tried_rates):
        sets[0].rates.data.fill_(rate)
        keys = (bench.config.seed, "tuning")
        model = bench.model(*keys)
        thetas = snapshots(sets[0], model, LOSSES[loss], protocol, *keys)
        vals[loss, rate] = choose_epoch(model, thetas, bench.real["val"])[1]
    loss, rate = max(vals, key=lambda choice: vals[choice])
    assert chosen == Tuned(loss, (rate, rate), recall=max(vals.values()))
    assert str(chosen) == f"{loss}, rate {rate:g}"
    assert set(draws[0][0][0]) != set(draws[1][0][0])
    for draw, (pairs, found) in enumerate(zip(sets, outcomes, strict=True)):
        pairs.rates.data.fill_(rate)
        assert found == trial(bench, pairs, LOSSES[loss], "random pairs", draw)


def test_full_data_is_what_the_experts_reached(bench: Setting) -> None:
    outcomes = full_data(bench)
    model = bench.model(0)
    last = bench.config.experts.epochs
    for expert, found in enumerate(outcomes):
        bench.flat.load(experts_of(bench).snapshots(expert, [last])[0], model)
        assert found.last == measure(model, bench.real["test"])
