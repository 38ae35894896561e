"""Rows of results: what the networks reach that are trained on a set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from lors.config import Config
from lors.config.types import Control
from lors.encoders import DualEncoder, FlatModel
from lors.evaluation.controls import controlled
from lors.evaluation.protocol import (
    Outcome,
    choose_epoch,
    frozen_inputs,
    outcomes,
    snapshots,
    summarise,
)
from lors.evaluation.recall import chance
from lors.evaluation.results import Row
from lors.evaluation.statistic import Chance
from lors.evaluation.tuning import pairs_for, rates_label, trial
from lors.losses import Loss
from lors.sets.distilled import DistilledSet
from lors.setting import Setting
from lors.setting.threads import threads_of
from lors.system.memory import keeping_freed_memory

__all__ = ["evaluated_row", "evaluation_network", "row_of", "set_row"]

NETWORK = "evaluation network"
"""The key that draws the networks which are trained on a set."""


def evaluated_row(setting: Setting, distilled: DistilledSet, control: Control | None = None) -> Row:
    """What networks of a setting reach on a set, with the loss of the setting."""
    config, loss = setting.config, setting.loss
    note = _how_trained(distilled, config) if config.loss == distilled.config.loss else config.loss
    with threads_of(setting), keeping_freed_memory():
        if control is not None:
            distilled, tuned = controlled(setting, distilled, control)
            loss, note = (distilled.loss, tuned) if tuned else (loss, note)
        reached = _reached(setting, distilled, loss)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


def set_row(setting: Setting, distilled: DistilledSet) -> Row:
    """What networks of a setting reach on a set, with the loss that it was made for."""

    def keep(network: DualEncoder) -> None:
        _kept.clear()
        _kept[_key(setting, distilled)] = network

    reached = _reached(setting, distilled, distilled.loss, keep)
    note = _how_trained(distilled, setting.config)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


_kept: dict[str, DualEncoder] = {}
"""The first network of the last run that was evaluated, which its report shows."""


def _key(setting: Setting, distilled: DistilledSet) -> str:
    """Identifies what an evaluation of a set depends on."""
    digest = hashlib.sha256(setting.config.model_dump_json().encode())
    for what in (distilled.config.loss, setting.pairs.fingerprint, setting.text_trunk.fingerprint):
        digest.update(what.encode())
    for tensor in distilled.pairs.state_dict().values():
        digest.update(tensor.detach().cpu().double().numpy().tobytes())
    return digest.hexdigest()


def row_of(
    setting: Setting,
    reached: list[Outcome],
    pairs: int,
    storage: float | None = None,
    note: str = "",
) -> Row:
    """What networks of a setting reached on its test split, as a row of results."""
    if diverged := sum(each.diverged for each in reached):
        note += f"; {diverged} of {len(reached)} networks diverged"
    return Row(
        pairs=pairs,
        storage=pairs if storage is None else storage,
        networks=len(reached),
        note=note,
        recall=summarise(reached),
        chance=Chance.of(chance(setting.real["test"].owner)),
    )


def _how_trained(made: DistilledSet, judged: Config) -> str:
    config = made.config
    kind = "an expert's" if judged.evaluate.similarity == "expert" else config.similarity.kind
    if made.imported:
        return f"{config.loss}, {kind} S, {rates_label(made.rates)}"
    if not config.learns_rates():
        plain = "" if judged.evaluate.similarity == "own" else f", {kind} S"
        return f"{config.loss}{plain}, {rates_label(made.rates)}"
    return f"{config.loss}, {kind} S, learned rates"


def evaluation_network(
    setting: Setting, distilled: DistilledSet, after_epoch: Callable[[int], None]
) -> DualEncoder:
    """The first of the networks that the evaluation trains on a set, at its epoch chosen on val.

    Args:
        setting: data, networks and protocol.
        distilled: what to train on, with the loss that it was made for.
        after_epoch: called with the number of epochs done.
    """
    if (kept := _kept.pop(_key(setting, distilled), None)) is not None:
        return kept
    keys, protocol = (setting.config.seed, NETWORK, 0), setting.config.evaluate
    model, pairs = setting.model(*keys), pairs_for(setting, distilled)
    with threads_of(setting):
        thetas = snapshots(pairs, model, distilled.loss, protocol, *keys, after_epoch=after_epoch)
        best, _ = choose_epoch(model, thetas, setting.real["val"])
    FlatModel(model).load(thetas[best], model)
    return model


def _reached(
    setting: Setting,
    distilled: DistilledSet,
    loss: Loss,
    keep: Callable[[DualEncoder], None] = lambda network: None,
) -> list[Outcome]:
    """What the networks reach; the first one is shown to ``keep``."""
    pairs = pairs_for(setting, distilled)
    inputs = frozen_inputs(pairs, setting.flat.model)

    def reached(seed: int) -> Outcome:
        first = {"keep": keep} if seed == 0 else {}
        return trial(setting, pairs, loss, NETWORK, seed, inputs=inputs, **first)

    seeds = range(setting.config.evaluate.seeds)
    with threads_of(setting):
        return outcomes(seeds, reached, setting.progress, "train on the set")
