"""Settings on top of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lors.config.options import DEFAULT_MATCHER, options_of
from lors.system.errors import InputError

__all__ = ["changed", "merged"]


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with the changes put in, section by section.

    Another matcher keeps the options of the one before that it has too. An empty mapping inside a
    section, as in ``data: {annotations: {}}``, takes the place of what the base has there.

    >>> merged({"a": {"b": 1, "c": {"d": 2}}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': {'d': 2}}}
    >>> merged({"a": {"b": 1, "c": {"d": 2}}}, {"a": {"c": {}}})
    {'a': {'b': 1, 'c': {}}}
    """
    result = dict(base)
    before, after = base.get("matching"), changes.get("matching")
    if isinstance(before, dict) and isinstance(after, dict):
        kind = after.get("kind", before.get("kind"))
        if isinstance(kind, str) and kind != before.get("kind", DEFAULT_MATCHER):
            kept = options_of(kind).model_fields
            base = {**base, "matching": {k: v for k, v in before.items() if k in kept}}
    for section, own in changes.items():
        both = isinstance(own, dict) and isinstance(base.get(section), dict)
        result[section] = _within(base[section], own) if both else own
    return result


def _within(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A section with the changes put in."""
    result = dict(base)
    for key, value in changes.items():
        both = value and isinstance(value, dict) and isinstance(base.get(key), dict)
        result[key] = _within(base[key], value) if both else value
    return result


def changed(values: dict[str, Any], changes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Settings with others put in by dotted name, one after the other; they may change in place.

    Raises:
        InputError: a name goes on after a setting that is no section.

    >>> changed({"distill": {"budget": 100}}, [("distill.budget", 50), ("seed", 1)])
    {'distill': {'budget': 50}, 'seed': 1}
    """
    kinds = [value for key, value in changes if key == "matching.kind"]
    if kinds:
        values = merged(values, {"matching": {"kind": kinds[-1]}})
    for key, value in changes:
        _put(values, key.split("."), value, key)
    return values


def _put(values: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    for step in path[:-1]:
        inner = values.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InputError(f"override {key!r}: {step!r} is not a section")
        values = inner
    values[path[-1]] = value
