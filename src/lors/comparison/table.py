"""Tables as data: which configurations to run for which cell, and what the paper reports there.

A table is the product of its rows and columns. Each of these is a variant: a label, perhaps a
preset to start from or a method, and settings that replace the preset's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lors.comparison.cell import Cell
from lors.comparison.variant import (
    Variant,
    configured,
    matcher_options,
    method_variant,
    overrides_of,
)
from lors.config import Method, find_method, load_config
from lors.config.catalogue import sized
from lors.config.names import MATCHERS
from lors.config.parsing import package_data
from lors.system.errors import InputError, choose

__all__ = [
    "Table",
    "Variant",
    "axes",
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
        options = [matcher_options(*place) for place in places]
        every = set[str]().union(*options)
        cells = [
            Cell(
                row.label,
                column.label,
                seed,
                *configured(row, column, seed, overrides, others),
                row.control or column.control,
            )
            for (row, column), own in zip(places, options, strict=True)
            for others in [every - own]
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


@cache
def tables() -> Mapping[str, Mapping[str, Any]]:
    """What the file of every table of the paper says, by name."""
    names = sorted(path.name for path in (files("lors.comparison") / "tables").iterdir())
    return {
        name.removesuffix(".yaml"): package_data("lors.comparison", f"tables/{name}")
        for name in names
        if name.endswith(".yaml")
    }


def titles() -> dict[str, str]:
    """What every table shows, by name."""
    return {name: table["title"] for name, table in tables().items()}


def scales(name: str) -> list[str]:
    """The scales at which there is a table of this name."""
    table = choose(tables(), name, "table")
    return [scale for scale in SCALES if scale in table]


def load_table(name: str, scale: str = "full") -> Table:
    """A table of the paper.

    Args:
        name: one of ``tables()``.
        scale: ``full`` as in the paper, or ``small`` for a laptop.

    Raises:
        InputError: no such table, or not at this scale.
    """
    able = scales(name)
    if scale not in SCALES:
        raise InputError(f"unknown scale {scale!r}: set --scale full or --scale small")
    if scale not in able:
        raise InputError(f"the table {name!r} has no {scale} scale: set --scale {able[0]}")
    parts = _parts(name, scale)
    common, tuned = parts.pop("defaults", {}), parts.pop("tuned", {})
    for axis in ("rows", "columns"):
        variants = [each for item in parts[axis] for each in _variants(item, tuned)]
        parts[axis] = [_with_defaults(variant, common) for variant in variants]
    if scale == "small":
        parts.pop("published", None)  # other data: the paper's numbers would mislead
    try:
        return Table.model_validate(parts)
    except ValidationError as error:
        raise InputError(f"table {name!r} is damaged: {error}") from None


def _parts(name: str, scale: str) -> dict[str, Any]:
    """What a table says at a scale, which may start from another table at that scale."""
    table = tables()[name]
    own = dict(table[scale])
    base = tables()[own.pop("base")][scale] if "base" in own else {}
    return {**base, **{key: part for key, part in table.items() if key not in SCALES}, **own}


def _variants(item: str | dict[str, Any], tuned: dict[str, dict[str, Any]]) -> list[Variant]:
    """What a row or a column stands for: a method, or a variant, perhaps at several sizes."""
    if isinstance(item, str):
        return [method_variant(item, tuned.get(item))]
    return [Variant.model_validate(each) for _, each in sized("", item)]


def _with_defaults(variant: Variant, common: dict[str, Any]) -> Variant:
    """A variant that has a preset, with defaults of the whole table below its own."""
    if variant.preset is None:
        return variant
    return variant.model_copy(update={"defaults": {**common, **variant.defaults}})


def narrowed(table: Table, chosen: Sequence[str], budgets: Sequence[int]) -> Table:
    """A table with only some of its methods and sizes.

    Args:
        table: of which methods are one axis and presets the other.
        chosen: names of methods; none: all.
        budgets: storage in pairs; none: all.

    Raises:
        InputError: the table has none of these.
    """
    across, along = axes(table)
    wanted = {find_method(name).name for name in chosen}
    kept = [variant for variant in getattr(table, across) if not wanted or variant.method in wanted]
    sized = [
        variant
        for variant in getattr(table, along)
        if not budgets
        or load_config(variant.preset, overrides_of(variant.set)).distill.budget in budgets
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
    _, along = axes(table)
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


def axes(table: Table) -> tuple[str, str]:
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
    for name in chosen:
        _check_rates(config, find_method(name))
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


def _check_rates(config: str, method: Method) -> None:
    """Refuse a method without rates of its own where a configuration has those of another matcher.

    A method that the configuration names does not count: another takes its place. And a method of
    a user's own is tried with whatever rates there are.
    """
    own = MATCHERS.is_own(method.matcher)
    if own or method.selects or "distill.learning_rates.images" in method.defaults:
        return
    kind = load_config(config, method="random").matching.kind  # which leaves matching alone
    if kind != method.matcher:
        raise InputError(
            f"{config} has the settings of {kind} matching, which {method.label} cannot use: give "
            "a configuration with those of LoRS, such as features-lors"
        )
