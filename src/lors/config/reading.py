"""Reading configurations: a preset or a YAML file, a method, and ``key=value`` overrides."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lors.config.bases import Bases
from lors.config.config import Config
from lors.config.merging import changed
from lors.config.methods import Method, find_method
from lors.config.parsing import CONFIG_BYTES, parse
from lors.config.sentences import sentence
from lors.config.upgrade import upgraded
from lors.system.errors import InputError, shortened

__all__ = ["difference", "load_config"]

DEPTH = 10
"""The most sections within each other that an override may name."""


def load_config(
    source: str | Path | Mapping[str, Any],
    overrides: Iterable[str] | Mapping[str, Any] = (),
    method: str | Method | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """Read a configuration.

    Args:
        source: the name of a preset or of a method, a YAML file, or a mapping.
        overrides: ``"section.key=value"``, where the value is read as YAML; or values by dotted
            name.
        method: takes the place of the preset's own; where the source has a loss of the published
            code, so has the method.
        defaults: by dotted name, above those of the method and below the overrides.

    Raises:
        InputError: unknown preset, file, method, key or value; the message says which and what to
            do.

    >>> load_config("demo", ["distill.iterations=5"]).distill.iterations
    5
    >>> load_config("demo", method="amd").distill.init
    'k-means'
    """
    try:
        if isinstance(source, Mapping):
            values = copy.deepcopy(dict(source))
        else:
            values = Bases(with_methods=method is None).read(str(source))
        values = upgraded(values)
        changes: list[tuple[str, Any]] = list((defaults or {}).items())
        if isinstance(overrides, Mapping):
            given = list(overrides.items())
        else:
            given = [_override(override) for override in overrides]
        if method is not None:
            found = find_method(method).in_reading_of(values.get("loss"))
            changes = [*found.before().items(), *found.defaults.items(), *changes]
            given += found.settings.items()
        return Config.model_validate(changed(values, [*changes, *given]))
    except ValidationError as error:
        raise InputError(sentence(error, Config)) from None
    except RecursionError:
        raise InputError("the configuration is nested too deeply") from None


def _override(override: str) -> tuple[str, Any]:
    """The name and the value that ``section.key=value`` says."""
    what = f"override {shortened(override)!r}"
    key, equals, text = override.partition("=")
    if not equals:
        raise InputError(f"{what} is not of the form section.key=value")
    if key.count(".") >= DEPTH:
        raise InputError(f"{what} names sections that are not there")
    if len(text) > CONFIG_BYTES:
        raise InputError(f"{what} has more than {CONFIG_BYTES:,} characters")
    return key, parse(text, what)


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The settings in which two nested mappings differ, as ``"key: theirs, not ours"``."""
    lines = []
    for key in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(key), theirs.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            lines += difference(a, b, f"{prefix}{key}.")
        elif a != b:
            lines.append(f"{prefix}{key}: {b}, not {a}")
    return lines
