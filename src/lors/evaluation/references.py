"""The two references of every result: the full data, and random pairs of equal storage."""

from __future__ import annotations

import copy
import json
from typing import Any

from lors.encoders import DualEncoder, FlatModel
from lors.evaluation.protocol import Outcome, choose_epoch, outcome, outcomes
from lors.evaluation.results import FULL_DATA, RANDOM_PAIRS, Row
from lors.evaluation.rows import row_of
from lors.evaluation.tuning import Tuned, rates_label, trial, tune, with_rates
from lors.experts import expert_origin, experts_of
from lors.files import artifacts
from lors.files.cache import fingerprint
from lors.losses import LOSSES
from lors.selection import select
from lors.setting import Setting
from lors.setting.threads import threads_of
from lors.system import ranks

__all__ = [
    "REFERENCES",
    "cached_reference",
    "full_data",
    "full_data_model",
    "random_pairs",
    "reference_row",
]

REFERENCES = (FULL_DATA, RANDOM_PAIRS)
"""Of every result."""


def reference_row(name: str, setting: Setting) -> Row:
    """A reference of a setting, by its name in tables, as a row of results."""
    config = setting.config
    with threads_of(setting):
        if name == FULL_DATA:
            note = f"{config.experts.loss}, {rates_label(config.experts.rates())}"
            return row_of(setting, full_data(setting), len(setting.real["train"]), note=note)
        reached, best = random_pairs(setting)
    return row_of(setting, reached, config.distill.budget, note=str(best))


def cached_reference(name: str, setting: Setting, budget: int) -> Row:
    """The same of so many pairs, unless it was measured before, below ``LORS_HOME``.

    No more experts are trained than are measured.
    """
    setting = _with(setting, min(setting.config.evaluate.seeds, setting.config.experts.count))
    distill = setting.config.distill.model_copy(update={"budget": budget})
    setting.config = setting.config.model_copy(update={"distill": distill})
    path = artifacts.home() / "references" / f"{fingerprint(name, _key(setting))}.json"

    def known() -> dict[str, Any] | None:
        try:
            return Row.model_validate(json.loads(path.read_text("utf-8"))).content()
        except (OSError, ValueError, RecursionError):
            return None

    found = ranks.from_rank_zero(known)
    if found is not None:
        return Row.model_validate(found)
    row = reference_row(name, setting)
    if ranks.rank() == 0:
        artifacts.write_text(path, json.dumps(row.content()))
    return row


def _with(setting: Setting, experts: int) -> Setting:
    """The same data and encoders, whatever has been made of them, with so many experts."""
    fewer = setting.config.experts.model_copy(update={"count": experts})
    other = copy.copy(setting)
    other.config = setting.config.model_copy(update={"experts": fewer})
    return other


def _key(setting: Setting) -> str:
    """All that a reference depends on."""
    values = setting.config.model_dump(mode="json")
    shared = {name: values[name] for name in ("seed", "dtype", "encoder", "evaluate", "device")}
    trunks = [setting.image_trunk, setting.text_trunk.fingerprint]
    budget = setting.config.distill.budget
    experts = [values["experts"][name] for name in ("count", "folder")]
    everything = [expert_origin(setting), shared, trunks, budget, *experts]
    return json.dumps([everything, artifacts.versions()], sort_keys=True)


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
    store = experts_of(_with(setting, experts=1))
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
