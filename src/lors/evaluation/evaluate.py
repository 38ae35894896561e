"""Evaluating a set: fresh networks are trained on it, and their recall is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lors.config import load_config
from lors.config.keywords import by_dotted_name
from lors.data import Pairs
from lors.data.anything import as_pairs
from lors.evaluation.protocol import Outcome, frozen_inputs, outcomes, summarise
from lors.evaluation.recall import chance
from lors.evaluation.results import Row
from lors.evaluation.statistic import Chance
from lors.evaluation.tuning import rates_label, trial
from lors.losses import Loss
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.showing import showing_progress

__all__ = ["evaluate", "evaluate_set", "row_of", "set_row"]


def evaluate_set(
    path: str | Path, overrides: Sequence[str] = (), progress: Progress | None = None
) -> Row:
    """Train fresh networks on a saved set and measure their recall.

    Args:
        path: a distilled set.
        overrides: changes to the configuration saved in the set, e.g. ``evaluate.seeds=10``.
        progress: reports long-running work.

    Returns:
        The recalls of these networks, as a row of a run's results.
    """
    return _evaluated(DistilledSet.load(path), overrides, progress or Silent())


def _evaluated(
    distilled: DistilledSet,
    overrides: Sequence[str] | Mapping[str, Any],
    progress: Progress,
    pairs: Pairs | None = None,
    values: Mapping[str, Any] | None = None,
) -> Row:
    made_with = distilled.config.encoder
    config = load_config(values or distilled.config.model_dump(mode="json"), overrides)
    if config.encoder.space != made_with.space:
        raise InputError(f"this set holds {made_with.space}: encoder.space cannot be changed")
    setting = setting_of(config, progress, like=distilled, pairs=pairs)
    if made_with.space == "features" and setting.image_trunk != distilled.image_trunk:
        raise InputError(
            f"this set holds features of {made_with.image!r} at {made_with.image_size} px, which "
            "no other trunk, weights or size can use: distil in space pixels to change them"
        )
    note = _how_trained(distilled) if config.loss == distilled.config.loss else config.loss
    reached = _reached(setting, distilled, setting.loss)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


def evaluate(
    distilled: DistilledSet | str | Path,
    test: Any = None,
    val: Any = None,
    *,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Row:
    """What a set is worth: fresh networks are trained on it, and their recall is measured.

    >>> small = DistilledSet.load("runs/demo/distilled.safetensors")  # doctest: +SKIP
    >>> evaluate(small, test=(images, texts)).mean  # doctest: +SKIP
    43.7

    Args:
        distilled: a set, or its file.
        test: real pairs to search among, as ``(images, texts)`` or ``(images, texts, owner)`` in
            the units of the data the set was made from, as ``(images, captions)``, or as any other
            dataset that ``distill`` takes; default: those of the configuration it was made with.
        val: real pairs to choose the epoch by; without them, the last epoch counts.
        progress: True, False, or an object that reports long-running work.
        options: settings by keyword, as of ``distill``: ``evaluate={"seeds": 3}``.

    Returns:
        The recalls, by mean and deviation over networks; ``.mean`` is the field's single figure.
    """
    made = distilled if isinstance(distilled, DistilledSet) else DistilledSet.load(distilled)
    changes = by_dotted_name(options, made.config.matching.kind)
    with showing_progress(progress) as shown:
        if test is None:
            return _evaluated(made, changes, shown)
        splits = {"test": as_pairs(test, progress=shown)}
        if val is not None:
            splits["val"] = as_pairs(val, progress=shown)
        else:
            changes["evaluate.checks"] = 1
        given = {name: real.only_split() for name, real in splits.items()}
        every = {"train": given["test"], "val": given["test"], **given}
        real = Pairs(splits["test"].settings, every)
        values = {**made.config.model_dump(mode="json"), "data": real.settings}
        row = _evaluated(made, changes, shown, real, values)
        return (
            row if val is not None else row.model_copy(update={"note": f"{row.note}, last epoch"})
        )


def set_row(setting: Setting, distilled: DistilledSet) -> Row:
    """What networks of a setting reach on a set, with the loss that it was made for."""
    reached = _reached(setting, distilled, distilled.loss)
    return row_of(setting, reached, len(distilled), distilled.storage(), _how_trained(distilled))


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


def _how_trained(made: DistilledSet) -> str:
    config = made.config
    if not config.learns_rates():
        return f"{config.loss}, {rates_label(made.rates)}"
    return f"{config.loss}, {config.similarity.kind} S, learned rates"


def _reached(setting: Setting, distilled: DistilledSet, loss: Loss) -> list[Outcome]:
    images, old = distilled.images_for(setting.flat.model), distilled.pairs
    pairs = SyntheticPairs(images, old.texts.detach(), old.similarity, old.rates.tolist())
    pairs.to(setting.device, setting.dtype)
    inputs = frozen_inputs(pairs, setting.flat.model)

    def reached(seed: int) -> Outcome:
        return trial(setting, pairs, loss, "evaluation network", seed, inputs=inputs)

    seeds = range(setting.config.evaluate.seeds)
    return outcomes(seeds, reached, setting.progress, "train on the set")
