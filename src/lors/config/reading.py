"""Reading configurations: a preset or a YAML file, its bases, and ``key=value`` overrides.

A configuration may name a base, or several of which each changes the one before, as in
``base: [flickr8k-heads-100, hindsight]``: the data and encoders of one, the method of another.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from lors.config.config import Config
from lors.errors import InputError, suggestion

__all__ = ["difference", "load_config", "presets"]

CONFIG_BYTES = 100_000


def presets() -> dict[str, str]:
    """The YAML text of every preset that comes with the package, by name."""
    folder = files("lors") / "presets"
    found = {p.name[:-5]: p.read_text("utf-8") for p in folder.iterdir() if p.name[-5:] == ".yaml"}
    return dict(sorted(found.items()))


def load_config(source: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> Config:
    """Read a configuration.

    Args:
        source: a preset's name, a YAML file, or a mapping.
        overrides: ``"section.key=value"``; the value is read as YAML.

    Raises:
        InputError: unknown preset, file, key or value; the message says which and what to do.

    >>> load_config("demo", ["distill.iterations=5"]).distill.iterations
    5
    """
    values = copy.deepcopy(dict(source)) if isinstance(source, Mapping) else _read(str(source))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise InputError(f"override {override!r} is not of the form section.key=value")
        _put(values, key.split("."), _parse(text, f"override {override!r}"), key)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


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


def _read(name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    if name in above:
        raise InputError(f"configuration {name!r} is its own base: {' -> '.join((*above, name))}")
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        text = _read_text(path)
    else:
        known = presets()
        if name not in known:
            raise InputError(
                f"unknown preset {name!r}{suggestion(name, known)} "
                "('lors presets' lists them; a file must end in .yaml)"
            )
        text = known[name]
    values = _parse(text, f"configuration {name!r}")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"configuration {name!r} must be a mapping of settings")
    bases = values.pop("base", None) or []
    merged: dict[str, Any] = {}
    for base in bases if isinstance(bases, list) else [bases]:
        merged = _merge(merged, _read(str(base), (*above, name)))
    return _merge(merged, values)


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with the changes put in, section by section."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merge(base[key], value) if both else value
    return merged


class _Loader(yaml.SafeLoader):
    """Plain values only. Without aliases, because a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported: write the value out")
        return super().compose_node(parent, index)


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            raise OSError("there is no such file")
        if path.stat().st_size > CONFIG_BYTES:
            raise OSError(f"a configuration has at most {CONFIG_BYTES:,} bytes")
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the configuration {str(path)!r}: {error}") from None


def _parse(text: str, what: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # PyYAML's own, and what its constructors raise on odd values
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{what} is not valid YAML: {reason}") from None


def _put(values: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    for step in path[:-1]:
        inner = values.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InputError(f"override {key!r}: {step!r} is not a section")
        values = inner
    values[path[-1]] = value


def _sentence(error: ValidationError) -> str:
    """The first problem pydantic found, as a sentence for the user."""
    problem = error.errors()[0]
    where = ".".join(str(step) for step in problem["loc"])
    if problem["type"] == "extra_forbidden":
        *sections, name = problem["loc"]
        section: Any = Config
        for step in (step for step in sections if isinstance(step, str)):  # not places in lists
            annotation = section.model_fields[step].annotation
            section = next((a for a in get_args(annotation) if a is not None), annotation)
        return f"unknown setting {where!r}{suggestion(str(name), section.model_fields)}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
    if not where:
        return message
    return f"setting {where!r} {message} (it is {reprlib.repr(problem['input'])})"
