"""Rows and columns of a table, and the configuration of the cell where two meet."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lors.config import Config, find_method, load_config
from lors.config.options import options_of
from lors.config.types import Control
from lors.system.errors import InputError

__all__ = [
    "CONTROLS",
    "Variant",
    "configured",
    "matcher_options",
    "method_variant",
    "overrides_of",
    "under_control",
]

CONTROLS: Mapping[Control, str] = {"identity": "S = I", "captions": "nearest captions"}
"""What tables call a finished set that is read under a control."""


def under_control(label: str, control: Control) -> str:
    """What the row of a control is called.

    >>> under_control("100 pairs", "identity")
    '100 pairs, S = I'
    """
    return f"{label}, {CONTROLS[control]}"


class Variant(BaseModel):
    """One row or one column.

    Args:
        label: what the table calls it.
        preset: the configuration to start from; a table's rows or its columns have one.
        method: the method, if one is to take the place of the preset's.
        set: settings, by dotted name, that make it what the label says.
        defaults: settings that suit it, and that a user may override.
        evaluate: settings that change only for the evaluation of a finished set.
        control: what a finished set has to do without; see ``lors.evaluation.controls``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    preset: str | None = None
    method: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    defaults: dict[str, Any] = Field(default_factory=dict)
    evaluate: dict[str, Any] = Field(default_factory=dict)
    control: Control | None = None

    def defining(self) -> tuple[str, ...]:
        """The settings that make it what it is."""
        return (*self.set, *(find_method(self.method).defining() if self.method else ()))


def method_variant(name: str, tuned: dict[str, Any] | None = None) -> Variant:
    """A method as a row or a column, with what was tuned for a table's data."""
    method = find_method(name)
    return Variant(label=method.label, method=name, defaults={**method.defaults, **(tuned or {})})


def configured(
    row: Variant,
    column: Variant,
    seed: int,
    overrides: Sequence[str],
    left_out: Container[str] = (),
) -> tuple[Config, tuple[str, ...]]:
    """What to run for a cell, and the overrides for the evaluation of its set.

    Args:
        row: of the cell.
        column: of the cell.
        seed: of the run.
        overrides: settings for all cells.
        left_out: settings that overrides and defaults may have and this cell has not, as a size
            may tune an option that not every matcher has.

    Raises:
        InputError: neither has a preset, or the settings are bad.
    """
    given = {**row.defaults, **column.defaults}
    defaults = {name: value for name, value in given.items() if name not in left_out}
    settings = [each for each in overrides if each.partition("=")[0] not in left_out]
    settings += [*overrides_of({**row.set, **column.set}), f"seed={seed}"]
    config = load_config(_preset(row, column), settings, column.method or row.method, defaults)
    return config, overrides_of({**row.evaluate, **column.evaluate})


def matcher_options(row: Variant, column: Variant) -> set[str]:
    """The options of the matcher of a cell, by dotted name."""
    method = column.method or row.method
    settings = {**(find_method(method).settings if method else {}), **row.set, **column.set}
    kind = settings.get("matching.kind") or load_config(_preset(row, column)).matching.kind
    return {f"matching.{name}" for name in options_of(kind).model_fields}


def _preset(row: Variant, column: Variant) -> str:
    preset = column.preset or row.preset
    if preset is None:
        raise InputError(f"neither row {row.label!r} nor column {column.label!r} has a preset")
    return preset


def overrides_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings by dotted name as ``load_config`` takes them.

    >>> overrides_of({"distill.budget": 100})
    ('distill.budget=100',)
    """
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())
