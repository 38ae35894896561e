"""Evaluating a set: fresh networks are trained on it, and their recall is measured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from lors.config import Config, load_config
from lors.config.keywords import by_dotted_name
from lors.data import Pairs
from lors.data.anything import as_pairs
from lors.data.in_memory import Given, length
from lors.encoders import DualEncoder, FlatModel
from lors.encoders.own import own_network
from lors.evaluation.expert_similarity import expert_similarity
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
from lors.evaluation.tuning import rates_label, trial
from lors.losses import Loss, named_loss
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.setting.threads import threads_of
from lors.system.errors import InputError
from lors.system.memory import keeping_freed_memory
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
    path: str | Path, overrides: Sequence[str] = (), progress: Progress | None = None
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
    config = load_config(values or distilled.config.model_dump(mode="json"), overrides)
    return evaluated_row(evaluation_setting(distilled, config, progress, pairs), distilled)


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


def evaluated_row(setting: Setting, distilled: DistilledSet) -> Row:
    """What networks of a setting reach on a set, with the loss of the setting."""
    config = setting.config
    note = _how_trained(distilled, config) if config.loss == distilled.config.loss else config.loss
    with keeping_freed_memory():
        reached = _reached(setting, distilled, setting.loss)
    return row_of(setting, reached, len(distilled), distilled.storage(), note)


def evaluate(
    distilled: DistilledSet | HasSet | str | Path,
    test: Any = None,
    val: Any = None,
    *,
    model: Callable[[], tuple[nn.Module, nn.Module]] | None = None,
    loss: str | Loss | None = None,
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
        progress: True, False, or an object that reports long-running work.
        options: settings by keyword, as of ``distill``: ``evaluate={"seeds": 3}``.

    Returns:
        The recalls, by mean and deviation over networks; ``.mean`` is the field's single figure.

    Raises:
        InputError: bad input, in one sentence, before any work starts.
    """
    made = _set_of(distilled)
    changes = by_dotted_name(options, made.config.matching.kind)
    if model is not None:
        changes["encoder.network"] = own_network(model)
    if loss is not None:
        changes["loss"] = named_loss(loss)
    with showing_progress(progress) as shown:
        if test is None:
            if val is not None:
                raise InputError("val chooses the epoch at which test is measured: give test, too")
            return _evaluated(made, changes, shown)
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
            _check_split(made, name, split)
        every = {"train": given["test"], "val": given["test"], **given}
        left_out = [each for real in splits.values() for each in real.left_out]
        real = Pairs(splits["test"].settings, every, left_out)
        values = {**made.config.model_dump(mode="json"), "data": real.settings}
        row = _evaluated(made, changes, shown, real, values)
        return (
            row if val is not None else row.model_copy(update={"note": f"{row.note}, last epoch"})
        )


class HasSet(Protocol):
    """A run, which has a set."""

    distilled: DistilledSet


def _set_of(given: Any) -> DistilledSet:
    """The set that is meant: itself, that of a run, or that of a file or run directory."""
    found = getattr(given, "distilled", given)
    if isinstance(found, DistilledSet):
        return found
    if not isinstance(given, (str, Path)):
        raise InputError(
            f"a {type(given).__name__} is not a distilled set: give one, its file, or a run"
        )
    path = Path(given)
    return DistilledSet.load(path / "distilled.safetensors" if path.is_dir() else path)


def _check_split(made: DistilledSet, name: str, split: Given) -> None:
    """Refuse real pairs that the set cannot be measured on."""
    if length(split) < 2:
        raise InputError(f"{name} has {length(split)} pair: recall needs 2 or more to search among")
    if isinstance(split, list):
        if made.given:
            raise InputError(f"{name} holds images, and the set embeddings: give embeddings")
        return
    if not made.given:
        raise InputError(
            f"{name} holds embeddings, and the set was made of images and captions: give these"
        )
    ours = made.pairs.images.shape[1], made.pairs.texts.shape[1]
    theirs = split.images.shape[1], split.texts.shape[1]
    if ours != theirs:
        raise InputError(
            f"the images and texts of {name} have {theirs[0]} and {theirs[1]} numbers each, and "
            f"those of the set {ours[0]} and {ours[1]}: give embeddings of the same encoders"
        )


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
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


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
    if (kept := _kept.pop(_key(setting, distilled), None)) is not None:
        return kept
    keys, protocol = (setting.config.seed, NETWORK, 0), setting.config.evaluate
    model, pairs = setting.model(*keys), _pairs_for(setting, distilled)
    with threads_of(setting):
        thetas = snapshots(pairs, model, distilled.loss, protocol, *keys, after_epoch=after_epoch)
        best, _ = choose_epoch(model, thetas, setting.real["val"])
    FlatModel(model).load(thetas[best], model)
    return model


def _pairs_for(setting: Setting, distilled: DistilledSet) -> SyntheticPairs:
    """The pairs of a set as the networks of a setting take them."""
    images, old = distilled.images_for(setting.flat.model), distilled.pairs
    pairs = SyntheticPairs(images, old.texts.detach(), old.similarity, old.rates.tolist())
    pairs = pairs.to(setting.device, setting.dtype)
    if setting.config.evaluate.similarity == "expert":
        pairs.similarity = expert_similarity(setting, pairs)
    return pairs


def _reached(
    setting: Setting,
    distilled: DistilledSet,
    loss: Loss,
    keep: Callable[[DualEncoder], None] = lambda network: None,
) -> list[Outcome]:
    """What the networks reach; the first one is shown to ``keep``."""
    pairs = _pairs_for(setting, distilled)
    inputs = frozen_inputs(pairs, setting.flat.model)

    def reached(seed: int) -> Outcome:
        first = {"keep": keep} if seed == 0 else {}
        return trial(setting, pairs, loss, NETWORK, seed, inputs=inputs, **first)

    seeds = range(setting.config.evaluate.seeds)
    with threads_of(setting):
        return outcomes(seeds, reached, setting.progress, "train on the set")
