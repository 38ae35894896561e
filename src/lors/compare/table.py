"""Tables as data: which configurations to run for which cell, and what the paper reports there.

A table is the product of its rows and columns. Each of these is a variant: a label, perhaps a
preset to start from, and settings that replace the preset's. Methods are variants with a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lors.config import Config, load_config
from lors.errors import InputError, choose

__all__ = ["METRICS", "Cell", "Table", "Variant", "load_table", "methods", "own_table", "tables"]

METRICS = ("ir1", "ir5", "ir10", "tr1", "tr5", "tr10")
SCALES = ("full", "small")


class Variant(BaseModel):
    """One row or one column.

    Args:
        label: what the table calls it.
        preset: the configuration to start from; a table's rows or its columns have one.
        set: settings that replace the preset's, by dotted name.
        evaluate: settings that change only for the evaluation of a finished set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    preset: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    evaluate: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One run of one cell: what to run, and where its result goes.

    Args:
        row: label.
        column: label.
        seed: of the run.
        config: what to distil or select.
        evaluate: overrides for the evaluation of the finished set; none: as it was made.
    """

    row: str
    column: str
    seed: int
    config: Config
    evaluate: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the run's folder; cells that differ in evaluation only share it."""
        parts = (self.row, "" if self.evaluate else self.column, f"seed {self.seed}")
        return "-".join(re.sub(r"[^a-z0-9]+", "-", p.lower()).strip("-") for p in parts if p)


class Table(BaseModel):
    """Rows, columns, and what the paper reports.

    Args:
        title: what the table shows.
        rows: variants.
        columns: variants.
        measure: what a cell reports: recalls, or seconds per iteration.
        published: the paper's numbers by row and column label: six recalls, or one number.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    rows: tuple[Variant, ...]
    columns: tuple[Variant, ...]
    measure: Literal["recall", "seconds"] = "recall"
    published: dict[str, dict[str, list[float]]] = Field(default_factory=dict)

    def cells(self, seeds: Sequence[int], overrides: Sequence[str] = ()) -> list[Cell]:
        """Every cell with every seed.

        Args:
            seeds: one run each.
            overrides: settings for all cells, e.g. ``data.root=…``.

        Raises:
            InputError: two cells that the file system could not tell apart, or bad settings.
        """
        cells = [
            Cell(row.label, column.label, seed, *_configure(row, column, seed, overrides))
            for row in self.rows
            for column in self.columns
            for seed in seeds
        ]
        names = {(cell.name, cell.config.model_dump_json()) for cell in cells}
        if len(names) != len({cell.name for cell in cells}):
            raise InputError("two rows or two columns have the same label: give each its own")
        return cells


def _configure(
    row: Variant, column: Variant, seed: int, overrides: Sequence[str]
) -> tuple[Config, tuple[str, ...]]:
    preset = column.preset or row.preset
    if preset is None:
        raise InputError(f"neither row {row.label!r} nor column {column.label!r} has a preset")
    settings = [*_overrides(row.set), *_overrides(column.set), *overrides, f"seed={seed}"]
    return load_config(preset, settings), _overrides({**row.evaluate, **column.evaluate})


def _overrides(settings: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())


def methods() -> dict[str, Variant]:
    """Every method that a comparison can name."""
    texts = yaml.safe_load((files("lors") / "compare" / "methods.yaml").read_text("utf-8"))
    found: dict[str, Variant] = {}
    for name, text in texts.items():
        base = found[text.pop("base")].set if "base" in text else {}
        found[name] = Variant(label=text["label"], set={**base, **text["set"]})
    return found


def tables() -> dict[str, str]:
    """The YAML text of every table of the paper, by name."""
    folder = files("lors") / "compare" / "tables"
    found = {p.name[:-5]: p.read_text("utf-8") for p in folder.iterdir() if p.name[-5:] == ".yaml"}
    return dict(sorted(found.items()))


def load_table(name: str, scale: str = "full") -> Table:
    """A table of the paper.

    Args:
        name: one of ``tables()``.
        scale: ``full`` as in the paper, or ``small`` for a laptop.

    Raises:
        InputError: no such table or scale.
    """
    text = yaml.safe_load(choose(tables(), name, "table"))
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}: set --scale full or --scale small")
    sized = text.pop(scale)
    for other in SCALES:
        text.pop(other, None)
    tuned, common = sized.pop("tuned", {}), sized.pop("set", {})
    text |= sized
    for axis in ("rows", "columns"):
        text[axis] = [_variant(item, tuned) for item in text[axis]]
    text["rows"] = [row.model_copy(update={"set": {**common, **row.set}}) for row in text["rows"]]
    if scale == "small":
        text.pop("published", None)  # other data: the paper's numbers would mislead
        text["title"] += ", small scale"
    try:
        return Table.model_validate(text)
    except ValidationError as error:
        raise InputError(f"table {name!r} is damaged: {error}") from None


def own_table(config: str, chosen: Sequence[str], budgets: Sequence[int]) -> Table:
    """A comparison of methods on a user's own configuration.

    Args:
        config: a preset or a YAML file.
        chosen: names of methods.
        budgets: storage in pairs; none: the configuration's.
    """
    budgets = budgets or [load_config(config).distill.budget]
    rows = [
        Variant(label=f"{budget} pairs", preset=config, set={"distill.budget": budget})
        for budget in budgets
    ]
    return Table(
        title=f"Methods on {config}",
        rows=tuple(rows),
        columns=tuple(choose(methods(), name, "method") for name in chosen),
    )


def _variant(item: str | dict[str, Any], tuned: dict[str, dict[str, Any]]) -> Variant:
    """A variant, or the method of that name with what was tuned for this table's data."""
    if isinstance(item, str):
        method = choose(methods(), item, "method")
        return method.model_copy(update={"set": {**method.set, **tuned.get(item, {})}})
    return Variant.model_validate(item)
