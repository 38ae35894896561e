"""Tables as data: which configurations to run for which cell, and what the paper reports there.

A table is the product of its rows and columns. Each of these is a variant: a label, perhaps a
preset to start from or a method, and settings that replace the preset's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lors.compare.cell import Cell
from lors.config import Config, find_method, load_config
from lors.system.errors import InputError, choose

__all__ = [
    "Table",
    "Variant",
    "load_table",
    "method_variant",
    "narrowed",
    "own_table",
    "scales",
    "tables",
    "titles",
    "transferred",
]

SCALES = ("full", "small")


class Variant(BaseModel):
    """One row or one column.

    Args:
        label: what the table calls it.
        preset: the configuration to start from; a table's rows or its columns have one.
        method: the method, if one is to take the place of the preset's.
        set: settings, by dotted name, that make it what the label says.
        defaults: settings that suit it, and that a user may override.
        evaluate: settings that change only for the evaluation of a finished set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    preset: str | None = None
    method: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    defaults: dict[str, Any] = Field(default_factory=dict)
    evaluate: dict[str, Any] = Field(default_factory=dict)

    def defining(self) -> tuple[str, ...]:
        """The settings that make it what it is."""
        return (*self.set, *(find_method(self.method).defining() if self.method else ()))


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
            InputError: bad settings, or overrides of what tells cells apart.
        """
        for override in overrides:
            self._refuse_defining(override.partition("=")[0])
        places = [(row, column) for row in self.rows for column in self.columns]
        options = [_options(row, column) for row, column in places]
        known = set[str]().union(*options)
        cells = [
            Cell(
                row.label,
                column.label,
                seed,
                *_configure(row, column, seed, overrides, known - own),
            )
            for (row, column), own in zip(places, options, strict=True)
            for seed in seeds
        ]
        if len({cell.name for cell in cells}) != len(cells):
            raise InputError("two rows or two columns have the same label: give each its own")
        for cell in cells:
            cell.check()
        return cells

    def _refuse_defining(self, key: str) -> None:
        """Refuse an override of a setting that makes a row or a column what it is."""
        for variant in (*self.rows, *self.columns):
            for defining in ("seed", *variant.defining()):
                if f"{defining}.".startswith(f"{key}."):
                    raise InputError(
                        f"{key!r} cannot be overridden: it makes {variant.label!r} what it is "
                        "(methods, budgets and seeds have options of their own)"
                    )

    @property
    def best_in(self) -> Literal["row", "column"]:
        """Where the best result is to be found: along the methods."""
        return "column" if any(column.preset for column in self.columns) else "row"


def _options(row: Variant, column: Variant) -> set[str]:
    """The options of the matcher of a cell, by dotted name."""
    defining = _overrides({**row.set, **column.set})
    plain = load_config(_preset(row, column), defining, column.method or row.method)
    return {f"matching.{name}" for name in type(plain.matching).model_fields}


def _configure(
    row: Variant, column: Variant, seed: int, overrides: Sequence[str], others: set[str]
) -> tuple[Config, tuple[str, ...]]:
    """The configuration of a cell, and the overrides of its evaluation.

    Args:
        row: of the cell.
        column: of the cell.
        seed: of the run.
        overrides: settings for all cells.
        others: options that only matchers of other cells have: nothing that is for all cells, or
            for a whole row or column, sets them here.
    """
    defaults = {**row.defaults, **column.defaults}
    defaults = {name: value for name, value in defaults.items() if name not in others}
    settings = [each for each in overrides if each.partition("=")[0] not in others]
    settings += [*_overrides({**row.set, **column.set}), f"seed={seed}"]
    config = load_config(_preset(row, column), settings, column.method or row.method, defaults)
    return config, _overrides({**row.evaluate, **column.evaluate})


def _preset(row: Variant, column: Variant) -> str:
    preset = column.preset or row.preset
    if preset is None:
        raise InputError(f"neither row {row.label!r} nor column {column.label!r} has a preset")
    return preset


def _overrides(settings: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())


def tables() -> dict[str, str]:
    """The YAML text of every table of the paper, by name."""
    folder = files("lors") / "compare" / "tables"
    found = {p.name[:-5]: p.read_text("utf-8") for p in folder.iterdir() if p.name[-5:] == ".yaml"}
    return dict(sorted(found.items()))


def titles() -> dict[str, str]:
    """What every table shows, by name."""
    return {name: yaml.safe_load(text)["title"] for name, text in tables().items()}


def scales(name: str) -> list[str]:
    """The scales at which there is a table of this name."""
    return _scales(yaml.safe_load(choose(tables(), name, "table")))


def _scales(text: dict[str, Any]) -> list[str]:
    return [scale for scale in SCALES if scale in text]


def load_table(name: str, scale: str = "full") -> Table:
    """A table of the paper.

    Args:
        name: one of ``tables()``.
        scale: ``full`` as in the paper, or ``small`` for a laptop.

    Raises:
        InputError: no such table, or not at this scale.
    """
    text = yaml.safe_load(choose(tables(), name, "table"))
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}: set --scale full or --scale small")
    if scale not in text:
        raise InputError(f"the table {name!r} has no {scale} scale: set --scale {_scales(text)[0]}")
    sized = text.pop(scale)
    for other in SCALES:
        text.pop(other, None)
    tuned, common = sized.pop("tuned", {}), sized.pop("defaults", {})
    text |= sized
    for axis in ("rows", "columns"):
        text[axis] = [_variant(item, tuned) for item in text[axis]]
    text["rows"] = [
        row.model_copy(update={"defaults": {**common, **row.defaults}}) for row in text["rows"]
    ]
    if scale == "small":
        text.pop("published", None)  # other data: the paper's numbers would mislead
    try:
        return Table.model_validate(text)
    except ValidationError as error:
        raise InputError(f"table {name!r} is damaged: {error}") from None


def narrowed(table: Table, chosen: Sequence[str], budgets: Sequence[int]) -> Table:
    """A table with only some of its methods and sizes.

    Args:
        table: of which methods are one axis and presets the other.
        chosen: names of methods; none: all.
        budgets: storage in pairs; none: all.

    Raises:
        InputError: the table has none of these.
    """
    across, along = _axes(table)
    wanted = {find_method(name).name for name in chosen}
    kept = [variant for variant in getattr(table, across) if not wanted or variant.method in wanted]
    sized = [
        variant
        for variant in getattr(table, along)
        if not budgets
        or load_config(variant.preset, _overrides(variant.set)).distill.budget in budgets
    ]
    if len(kept) < max(1, len(wanted)) or not sized:
        raise InputError(
            "the table has no such methods or budgets: see 'lors compare --table list'"
        )
    return table.model_copy(update={across: tuple(kept), along: tuple(sized)})


def transferred(table: Table, trunk: str, weights: str | None = None) -> Table:
    """A table in which every set is also evaluated with an image trunk that it was not made for.

    Args:
        table: of which methods are one axis.
        trunk: a name in timm, or one of the paper's.
        weights: ``hub``, a file, or None for none.
    """
    if table.measure == "seconds":
        raise InputError("a table of times has no recall: leave out --image-trunk")
    _, along = _axes(table)
    kept = getattr(table, along)
    changes = {"encoder.image": trunk, "encoder.image_weights": weights}
    others = [
        variant.model_copy(update={"label": f"{variant.label}, on {trunk}", "evaluate": changes})
        for variant in kept
        if not variant.evaluate
    ]
    labels = {variant.label for variant in kept}  # a table may have some of them already
    added = [variant for variant in others if variant.label not in labels]
    return table.model_copy(update={along: (*kept, *added)})


def _axes(table: Table) -> tuple[str, str]:
    """The axis that has the methods, and the other one."""
    return ("rows", "columns") if table.best_in == "column" else ("columns", "rows")


def own_table(config: str, chosen: Sequence[str], budgets: Sequence[int]) -> Table:
    """A comparison of methods on a user's own configuration.

    Args:
        config: a preset or a YAML file.
        chosen: names of methods.
        budgets: storage in pairs; none: the configuration's.

    Raises:
        InputError: no such method, or one that the configuration has no settings for.
    """
    base = load_config(config)
    budgets = list(dict.fromkeys(budgets)) or [base.distill.budget]
    columns = [method_variant(name) for name in dict.fromkeys(chosen)]
    rows = [
        Variant(label=f"{budget} pairs", preset=config, set={"distill.budget": budget})
        for budget in budgets
    ]
    return Table(
        title=f"Methods on {config}",
        rows=tuple(rows),
        columns=tuple(columns),
    )


def method_variant(name: str, tuned: dict[str, Any] | None = None) -> Variant:
    """A method as a row or a column, with what was tuned for a table's data."""
    method = find_method(name)
    return Variant(label=method.label, method=name, defaults={**method.defaults, **(tuned or {})})


def _variant(item: str | dict[str, Any], tuned: dict[str, dict[str, Any]]) -> Variant:
    if isinstance(item, str):
        return method_variant(item, tuned.get(item))
    return Variant.model_validate(item)
