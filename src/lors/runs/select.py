"""Selecting real pairs: the set that a run keeps, and the list of what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lors.evaluation.taught import teachers_similarity
from lors.evaluation.tuning import tune, with_rates
from lors.files.tables import write_csv
from lors.runs.folders import SELECTION
from lors.selection import select
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import pairs_within
from lors.setting import Setting
from lors.system import ranks

__all__ = ["selected_set"]


def selected_set(setting: Setting, out: Path) -> DistilledSet:
    """The pairs that a configuration selects, trained as suits them best on val.

    Args:
        setting: real pairs, networks and protocol.
        out: gets a list of the pairs.
    """
    config, kind = setting.config, setting.config.selection.kind
    assert kind is not None
    similarity = config.selection.kept_similarity()
    numbers = setting.plain_pairs(np.arange(1), np.arange(1)).pair_numbers()
    count = pairs_within(config.distill.budget, numbers, similarity)
    (chosen, scores), captions = select(setting, kind, count)
    pairs = setting.plain_pairs(chosen, captions)
    if config.selection.similarity == "teachers":
        pairs.similarity = teachers_similarity(setting, pairs)
    best = tune(setting, pairs)
    pairs = with_rates(pairs, best.rates)
    words = setting.pairs.splits["train"].captions
    selected = setting.distilled(
        pairs,
        best.loss,
        similarity,
        [words[caption] for caption in captions] if words else (),
    )
    if ranks.rank() == 0:
        _write_list(chosen, scores, captions, setting.pairs.splits["train"].captions, out)
    return selected


def _write_list(
    chosen: np.ndarray,
    scores: np.ndarray,
    captions: np.ndarray,
    texts: Sequence[str],
    out: Path,
) -> None:
    """Write down which pairs were selected, and with which scores."""
    rows = (
        (image, f"{score:.6g}", caption, texts[caption] if texts else "")
        for image, score, caption in zip(chosen, scores, captions, strict=True)
    )
    write_csv(out / SELECTION, ("image", "score", "caption", "text"), rows)
