"""What the cells of a comparison share: data, features, experts, the recall of the full data."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lors.comparison.cell import Cell
from lors.comparison.results import ClosedForm, Reference
from lors.config import Config
from lors.data import Pairs
from lors.evaluation.closed_form import closed_form_heads, real_moments
from lors.evaluation.protocol import Outcome, summarise
from lors.evaluation.recall import chance
from lors.evaluation.references import full_data
from lors.evaluation.statistic import Chance, MeanRecall, Recalls
from lors.evaluation.taught import taught_full_data
from lors.experts import experts_of
from lors.files import artifacts
from lors.setting import Setting, resolve, setting_of
from lors.system import ranks
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["prepare"]

FULL_DATA = TypeAdapter(dict[str, Recalls | MeanRecall])
"""What ``full-data.json`` holds: recalls by the settings and the data that they belong to."""

SHARED = ("data", "encoder", "experts", "evaluate", "device", "dtype")
"""Cells that agree in these, but for the number of experts, share experts, features and the
full-data reference."""


def prepare(
    cells: Sequence[Cell], out: Path, progress: Progress, pairs: Pairs | None = None
) -> list[Reference]:
    """Make what cells share, once: data, features and experts; and measure the full data.

    Where a cell has the similarity of teachers, the full data that they teach is measured, too.
    """
    settings: dict[str, list[Cell]] = {}
    for cell in cells:
        settings.setdefault(_shared(cell.config), []).append(cell)
    path = out / "full-data.json"
    known = FULL_DATA.validate_python(ranks.from_rank_zero(lambda: _plain(_known_references(path))))

    def recall(key: str, measure: Callable[[], list[Outcome]]) -> Recalls | MeanRecall:
        if key not in known:
            known[key] = summarise(measure()).chosen
            if ranks.rank() == 0:
                artifacts.write_text(path, json.dumps(_plain(known), indent=2))
        return known[key]

    references = []
    for key, group in settings.items():
        most = max(group, key=lambda cell: cell.config.experts.count)
        setting = setting_of(most.config, progress, pairs=pairs)
        experts_of(setting)
        key = f"{key} {setting.pairs.fingerprint}"
        own = [cell for cell in group if not cell.read_again]
        reference = Reference(
            rows=list(dict.fromkeys(cell.row for cell in own)),
            columns=list(dict.fromkeys(cell.column for cell in own)),
            recall=recall(key, partial(full_data, setting)),
            chances=Chance.of(chance(setting.pairs.splits["test"].owner)),
            heads=_closed_form(setting, own),
        )
        taught = next((c for c in own if c.config.selection.similarity == "teachers"), None)
        if taught is not None:
            config = resolve(taught.config)
            by = f"{key} taught by {config.experts.count} experts"
            found = recall(by, partial(_taught, setting, config))
            reference = reference.model_copy(update={"taught": found})
        references.append(reference)
    return references


def _taught(setting: Setting, config: Config) -> list[Outcome]:
    """The full data with the teachers of a configuration that shares all else with the setting."""
    other = copy.copy(setting)  # the same data and encoders, whatever has been made of them
    other.config = config
    return taught_full_data(other)


def _closed_form(setting: Setting, cells: Sequence[Cell]) -> dict[str, ClosedForm]:
    """Of frozen trunks, what heads in closed form reach in the storage of each row."""
    if setting.config.encoder.scope != "heads" or setting.config.data.augment:
        return {}
    budgets = {cell.row: cell.config.distill.budget for cell in cells}
    moments = real_moments(setting)
    found = {b: closed_form_heads(setting, b, moments) for b in set(budgets.values())}
    return {
        row: ClosedForm(mean=found[budget][1].mean, about=found[budget][0].about)
        for row, budget in budgets.items()
    }


def _plain(known: dict[str, Recalls | MeanRecall]) -> dict[str, Any]:
    return {key: recall.content() for key, recall in known.items()}


def _known_references(path: Path) -> dict[str, Recalls | MeanRecall]:
    """The recalls of the full data that were measured before, by what they belong to.

    Raises:
        InputError: the file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        return FULL_DATA.validate_python(json.loads(path.read_text("utf-8")))
    except (ValueError, RecursionError):
        raise InputError(f"{str(path)!r} is damaged: delete it to measure again") from None


def _shared(config: Config) -> str:
    values = config.model_dump(mode="json")
    shared = {name: values[name] for name in SHARED}
    del shared["experts"]["count"], shared["evaluate"]["tried_losses"]
    del shared["evaluate"]["tried_rates"]
    if config.experts.compact:
        shared["snapshots"] = config.expert_snapshots()
    return json.dumps(shared, sort_keys=True)
