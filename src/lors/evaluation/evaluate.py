"""Evaluating a set: fresh networks are trained on it, and their recall is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from lors.config import Config, load_config
from lors.config.keywords import by_dotted_name
from lors.config.types import Control
from lors.data import Pairs
from lors.data.anything import as_pairs
from lors.data.in_memory import Given, length
from lors.encoders.own import own_network
from lors.evaluation.results import Row
from lors.evaluation.rows import evaluated_row
from lors.losses import Loss, named_loss
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.showing import showing_progress

__all__ = ["evaluate", "evaluate_set", "evaluation_setting"]


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
