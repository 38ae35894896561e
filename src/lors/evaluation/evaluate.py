"""Evaluating a set: fresh networks are trained on it, and their recall is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lors.config import Config, load_config
from lors.config.keywords import by_dotted_name
from lors.config.types import Control
from lors.data import Pairs
from lors.data.anything import as_pairs
from lors.encoders import DualEncoder, FlatModel
from lors.encoders.own import own_network
from lors.evaluation.controls import controlled
from lors.evaluation.given import HasSet, check_split, set_of
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
from lors.losses import Loss, named_loss
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.showing import showing_progress

__all__ = [
    "evaluate",
    "evaluate_set",
    "evaluated_row",
    "evaluation_network",
    "evaluation_setting",
    "row_of",
    "set_row",
]

NETWORK = "evaluation network"
"""The key that draws the networks which are trained on a set."""


def evaluate_set(
    path: str | Path,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
    control: Control | None = None,
    pairs: Pairs | None = None,
) -> Row:
    """Train fresh networks on a saved set and measure their recall.

    >>> import lors
    >>> small = lors.distill(lors.Pairs({"source": "scenes", "pairs": {"train": 60}}), pairs=9,
    ...     method="random", encoder=lors.Encoder(image_size=8, scope="image"), progress=False,
    ...     evaluate={"epochs": 2, "seeds": 1}, tried_rates=[0.1])
    >>> small.save("small.safetensors")
    >>> evaluate_set("small.safetensors", ["evaluate.seeds=2"]).networks
    2

    Args:
        path: a distilled set.
        overrides: changes to the configuration saved in the set, e.g. ``evaluate.seeds=10``.
        progress: reports long-running work.
        control: as of ``evaluate``.
        pairs: the real pairs, where they are in memory.

    Returns:
        The recalls of these networks, as a row of a run's results.
    """
    made = DistilledSet.load(path)
    return _evaluated(made, overrides, progress or Silent(), pairs, control=control)


def _evaluated(
    distilled: DistilledSet,
    overrides: Sequence[str] | Mapping[str, Any],
    progress: Progress,
    pairs: Pairs | None = None,
    values: Mapping[str, Any] | None = None,
    control: Control | None = None,
) -> Row:
    config = load_config(values or distilled.config.model_dump(mode="json"), overrides)
    setting = evaluation_setting(distilled, config, progress, pairs)
    return evaluated_row(setting, distilled, control)


def evaluation_setting(
    distilled: DistilledSet, config: Config, progress: Progress, pairs: Pairs | None = None
) -> Setting:
    """The setting in which a set is measured; an InputError if it cannot be."""
    made_with = distilled.config.encoder
    if config.encoder.space != made_with.space:
        raise InputError(f"this set holds {made_with.space}: encoder.space cannot be changed")
    setting = setting_of(config, progress, like=distilled, pairs=pairs)
    if made_with.space == "features" and setting.image_trunk != distilled.image_trunk:
        raise InputError(
            f"this set holds features of {made_with.image!r} at {made_with.image_size} px, which "
            "no other trunk, weights or size can use: distil in space pixels to change them"
        )
    return setting


def evaluated_row(setting: Setting, distilled: DistilledSet, control: str | None = None) -> Row:
    """What networks of a setting reach on a set, with its loss, or under a control."""
    config, loss = setting.config, setting.loss
    note = _how_trained(distilled, config) if config.loss == distilled.config.loss else config.loss
    if control is not None:
        distilled, tuned = controlled(setting, distilled, control)
        loss, note = (distilled.loss, tuned) if tuned else (loss, note)
    reached = _reached(setting, distilled, loss)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


def evaluate(
    distilled: DistilledSet | HasSet | str | Path,
    test: Any = None,
    val: Any = None,
    *,
    model: Callable[[], tuple[nn.Module, nn.Module]] | None = None,
    loss: str | Loss | None = None,
    control: Control | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Row:
    """What a set is worth: fresh networks are trained on it, and their recall is measured.

    >>> import lors
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(200, 4))
    >>> images, texts = (shared @ rng.normal(size=(4, size)) for size in (12, 10))
    >>> small = lors.distill(images[:150], texts[:150], pairs=9, method="random", progress=False,
    ...                      evaluate={"epochs": 9, "seeds": 2}, tried_rates=[0.3])
    >>> reached = lors.evaluate(small, test=(images[150:], texts[150:]), progress=False)
    >>> reached.networks, reached.recall.ir10.mean > reached.recall.ir1.mean, reached.mean > 40
    (2, True, True)

    Args:
        distilled: a set, its file, or a run.
        test: real pairs to search among, as ``(images, texts)`` or ``(images, texts, owner)`` in
            the units of the data the set was made from, as ``(images, captions)``, or as any other
            dataset that ``distill`` takes; default: those of the configuration it was made with.
        val: real pairs to choose the epoch by; without them, the last epoch counts.
        model: train networks of your own, as of ``distill``; default: those the set was made for.
        loss: a name, or a function of logits and similarity; default: the set's.
        control: measure the set without what it may owe to soft labels or learned texts:
            ``identity`` sets S = I, ``captions`` replaces each text by the nearest real caption.
            Loss and rates are then the set's, or tuned ones if these are better on val.
        progress: True, False, or an object that reports long-running work.
        options: settings by keyword, as of ``distill``: ``evaluate={"seeds": 3}``.

    Returns:
        The recalls, by mean and deviation over networks; ``.mean`` is the field's single figure.

    Raises:
        InputError: bad input, in one sentence, before any work starts.
    """
    made = set_of(distilled)
    changes = by_dotted_name(options, made.config.matching.kind)
    if model is not None:
        changes["encoder.network"] = own_network(model)
    if loss is not None:
        changes["loss"] = named_loss(loss)
    with showing_progress(progress) as shown:
        if test is None:
            if val is not None:
                raise InputError("val chooses the epoch at which test is measured: give test, too")
            return _evaluated(made, changes, shown, control=control)
        if control is not None:
            raise InputError(
                "a control tunes and looks up captions in the data that the set was made from: "
                "leave out test and val, or compare with controls=True"
            )
        if changes.get("evaluate.similarity", made.config.evaluate.similarity) == "expert":
            raise InputError(
                "evaluate.similarity=expert needs experts, which train on the data the set was "
                "made from: leave test out"
            )
        skip_bad = bool(changes.get("data.skip_bad"))
        splits = {"test": as_pairs(test, progress=shown, skip_bad=skip_bad)}
        if val is not None:
            splits["val"] = as_pairs(val, progress=shown, skip_bad=skip_bad)
        else:
            changes["evaluate.checks"] = 1
        given = {name: real.only_split() for name, real in splits.items()}
        for name, split in given.items():
            check_split(made, name, split)
        every = {"train": given["test"], "val": given["test"], **given}
        left_out = [each for real in splits.values() for each in real.left_out]
        real = Pairs(splits["test"].settings, every, left_out)
        values = {**made.config.model_dump(mode="json"), "data": real.settings}
        row = _evaluated(made, changes, shown, real, values)
        return (
            row if val is not None else row.model_copy(update={"note": f"{row.note}, last epoch"})
        )


def set_row(setting: Setting, distilled: DistilledSet) -> Row:
    """What networks of a setting reach on a set, with the loss that it was made for."""
    reached = _reached(setting, distilled, distilled.loss)
    note = _how_trained(distilled, setting.config)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


def row_of(
    setting: Setting,
    reached: list[Outcome],
    pairs: int,
    storage: float | None = None,
    note: str = "",
) -> Row:
    """What networks of a setting reached on its test split, as a row of results."""
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
    keys, protocol = (setting.config.seed, NETWORK, 0), setting.config.evaluate
    model, pairs = setting.model(*keys), pairs_for(setting, distilled)
    thetas = snapshots(pairs, model, distilled.loss, protocol, *keys, after_epoch=after_epoch)
    best, _ = choose_epoch(model, thetas, setting.real["val"])
    FlatModel(model).load(thetas[best], model)
    return model


def _reached(setting: Setting, distilled: DistilledSet, loss: Loss) -> list[Outcome]:
    pairs = pairs_for(setting, distilled)
    inputs = frozen_inputs(pairs, setting.flat.model)

    def reached(seed: int) -> Outcome:
        return trial(setting, pairs, loss, NETWORK, seed, inputs=inputs)

    seeds = range(setting.config.evaluate.seeds)
    return outcomes(seeds, reached, setting.progress, "train on the set")
