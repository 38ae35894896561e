from __future__ import annotations

from itertools import product

from lors.evaluation.protocol import choose_epoch, measure, snapshots
from lors.evaluation.references import full_data, random_pairs
from lors.evaluation.tuning import Tuned, trial
from lors.experts import experts_of
from lors.losses import LOSSES
from lors.selection import select
from lors.setting import Setting


def test_random_pairs_are_tuned_on_val_and_drawn_anew_for_each_network(setting: Setting) -> None:
    outcomes, chosen = random_pairs(setting)
    protocol, budget = setting.config.evaluate, setting.config.distill.budget
    draws = [select(setting, "random", budget, draw) for draw in range(protocol.seeds)]
    sets = [setting.plain_pairs(images, captions) for (images, _), captions in draws]
    vals = {}
    for loss, rate in product(protocol.tried_losses, protocol.tried_rates):
        sets[0].rates.data.fill_(rate)
        keys = (setting.config.seed, "tuning")
        model = setting.model(*keys)
        thetas = snapshots(sets[0], model, LOSSES[loss], protocol, *keys)
        vals[loss, rate] = choose_epoch(model, thetas, setting.real["val"])[1]
    loss, rate = max(vals, key=lambda choice: vals[choice])
    assert chosen == Tuned(loss, (rate, rate), recall=max(vals.values()))
    assert str(chosen) == f"{loss}, rate {rate:g}"
    assert set(draws[0][0][0]) != set(draws[1][0][0])
    for draw, (pairs, found) in enumerate(zip(sets, outcomes, strict=True)):
        pairs.rates.data.fill_(rate)
        assert found == trial(setting, pairs, LOSSES[loss], "random pairs", draw)


def test_full_data_is_what_the_experts_reached(setting: Setting) -> None:
    outcomes = full_data(setting)
    model = setting.model(0)
    last = setting.config.experts.epochs
    for expert, found in enumerate(outcomes):
        setting.flat.load(experts_of(setting).snapshots(expert, [last])[0], model)
        assert found.last == measure(model, setting.real["test"])
