"""Rows and columns of a table, and the configuration of the cell where two meet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lors.config import Config, Method, find_method, load_config
from lors.config.options import options_of
from lors.system.errors import InputError

__all__ = ["Variant", "configured", "matcher_options", "method_variant", "overrides_of"]


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
        return (*self.set, *(find_method(self.method).settings if self.method else ()))


def method_variant(name: str, tuned: dict[str, Any] | None = None) -> Variant:
    """A method as a row or a column, with what was tuned for a table's data."""
    method = find_method(name)
    return Variant(label=method.label, method=name, defaults=tuned or {})


def configured(
    row: Variant, column: Variant, seed: int, overrides: Sequence[str]
) -> tuple[Config, tuple[str, ...]]:
    """What to run for a cell, and the overrides for the evaluation of its set.

    Raises:
        InputError: neither has a preset, or the settings are bad.
    """
    preset = column.preset or row.preset
    if preset is None:
        raise InputError(f"neither row {row.label!r} nor column {column.label!r} has a preset")
    method = _method(row, column)
    settings = [*overrides, *overrides_of({**row.set, **column.set}), f"seed={seed}"]
    config = load_config(preset, settings, method, _defaults(row, column, method))
    return config, overrides_of({**row.evaluate, **column.evaluate})


def _method(row: Variant, column: Variant) -> Method | None:
    name = column.method or row.method
    return None if name is None else find_method(name)


def _defaults(row: Variant, column: Variant, method: Method | None) -> dict[str, Any]:
    """Those of the data and the size, then the method's, then what was tuned for it here."""
    along, across = (column, row) if row.method else (row, column)
    defaults = {**along.defaults, **(method.defaults if method else {}), **across.defaults}
    own = matcher_options(row, column)
    if not own:
        return defaults
    # A size may tune options that not every matcher has.
    return {k: v for k, v in defaults.items() if k in own or not k.startswith("matching.")}


def matcher_options(row: Variant, column: Variant) -> set[str]:
    """The options of the matcher of a cell's method, by dotted name; none if it has none."""
    method = _method(row, column)
    if method is None or method.selects:
        return set()
    return {
        f"matching.{name}" for name in options_of(method.settings["matching.kind"]).model_fields
    }


def overrides_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings by dotted name as ``load_config`` takes them.

    >>> overrides_of({"distill.budget": 100})
    ('distill.budget=100',)
    """
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())
