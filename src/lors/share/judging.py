"""Judging any set: what it is worth, honestly and as the literature reads it, beside references."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lors.config import load_config
from lors.config.types import Control
from lors.evaluation.evaluate import evaluation_setting
from lors.evaluation.references import REFERENCES, cached_reference
from lors.evaluation.results import DISTILLED, SELECTED, Results, Row
from lors.evaluation.rows import evaluated_row
from lors.sets.distilled import DistilledSet
from lors.share.importing import import_set, is_foreign
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

__all__ = ["judge"]


def judge(
    source: DistilledSet | str | Path | Sequence[str | Path],
    like: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    references: bool = True,
    control: Control | None = None,
    alpha: float | None = None,
    progress: Progress | None = None,
) -> Results:
    """What a set is worth, beside random pairs of equal storage and the full data.

    Fresh networks are trained on it by its protocol. Each row has the recall at the epoch chosen on
    the validation split, which counts, and as ``readings.legacy`` that at the best epoch on the
    test split, which is what papers of this field report and too good by what the choice gains.

    >>> import lors
    >>> small = lors.distill(lors.Pairs({"source": "scenes", "pairs": {"train": 60}}), pairs=9,
    ...     method="random", encoder=lors.Encoder(image_size=8, scope="image"), progress=False,
    ...     evaluate={"epochs": 2, "seeds": 1}, tried_rates=[0.1])
    >>> judged = lors.judge(small, references=False)
    >>> judged.distilled.readings.legacy.mean.mean >= judged.distilled.mean
    True

    Args:
        source: a set, its file, a run directory; or, with ``like``, what ``import_set`` reads.
        like: for a set of another project, the preset, YAML file or settings it was made with.
        overrides: changes to the configuration, as ``"section.key=value"`` or by dotted name.
        references: also measure random pairs of equal storage and the full data, in the same
            protocol. What was measured once is kept below ``LORS_HOME``.
        control: as of ``evaluate``: S = I, or each text replaced by the nearest real caption.
        alpha: as of ``import_set``.
        progress: reports long-running work.

    Returns:
        Rows by name: ``distilled set`` or ``selected set``, ``random pairs`` and ``full data``.

    Raises:
        InputError: it is no set, or its data is not here.
    """
    progress = progress or Silent()
    made = _set_of(source, like, overrides, alpha, progress)
    saved = made.config.model_dump(mode="json")
    saved["evaluate"]["legacy"] = True
    config = load_config(saved, () if like is not None else overrides)
    setting = evaluation_setting(made, config, progress)
    row = _sized(evaluated_row(setting, made, control), made, made.storage())
    progress.say(str(row))
    selected = made.config.selection.kind is not None and not made.imported
    results = Results().with_row(SELECTED if selected else DISTILLED, row)
    for name in reversed(REFERENCES) if references else ():
        found = cached_reference(name, setting, math.ceil(made.storage()))
        results = results.with_row(name, _sized(found, made, found.storage))
    return results


def _set_of(
    source: Any,
    like: str | Path | Mapping[str, Any] | None,
    overrides: Sequence[str] | Mapping[str, Any],
    alpha: float | None,
    progress: Progress,
) -> DistilledSet:
    if isinstance(source, DistilledSet):
        return source
    if like is not None:
        return import_set(source, like, overrides, alpha=alpha, progress=progress)
    if not isinstance(source, (str, Path)):
        raise InputError("several files are subsets of a published set: say what it is like")
    path = Path(source)
    if is_foreign(path) and path.exists():
        raise InputError(
            f"{str(path)!r} is not a set of lors. If another project published it, say which "
            "configuration it was made with, as in --like flickr30k-lors-100-published: then it is "
            "opened as a file of tensors, and nothing else in it"
        )
    return DistilledSet.load(path / "distilled.safetensors" if path.is_dir() else path)


def _sized(row: Row, made: DistilledSet, storage: float) -> Row:
    """A row with its storage in bytes, each number as the set holds it."""
    a_pair = made.pairs.pair_numbers() * made.pairs.images.element_size()
    return row.model_copy(update={"bytes": round(storage * a_pair)})
