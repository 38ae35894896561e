"""Reading configurations: a preset or a YAML file, its bases, and ``key=value`` overrides.

A configuration may name a base, or several of which each changes the one before, as in
``base: [flickr8k-heads-100, hindsight]``: the data and encoders of a preset, and a method.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lors.config.config import Config
from lors.config.methods import Method, find_method, methods
from lors.config.options import options_of
from lors.config.sentences import sentence
from lors.config.upgrade import upgraded
from lors.system.errors import InputError, shortened, suggestion

__all__ = ["difference", "load_config", "presets"]

CONFIG_BYTES = 100_000
"""The longest configuration, and the longest override."""
BASES = 100
"""The most configurations that one may be put together from."""
NUMBER_LENGTH = 100
"""The most characters of a number."""
DEPTH = 10
"""The most sections within each other that an override may name."""
FLOW_DEPTH = 50
"""The most brackets within each other."""


def presets() -> dict[str, str]:
    """The YAML text of every preset that comes with the package, by name."""
    return dict(_presets())


@cache
def _presets() -> dict[str, str]:
    folder = files("lors.config") / "presets"
    found = {p.name[:-5]: p.read_text("utf-8") for p in folder.iterdir() if p.name[-5:] == ".yaml"}
    return dict(sorted(found.items()))


def load_config(
    source: str | Path | Mapping[str, Any],
    overrides: Iterable[str] = (),
    method: str | Method | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """Read a configuration.

    Args:
        source: the name of a preset or of a method, a YAML file, or a mapping.
        overrides: ``"section.key=value"``; the value is read as YAML.
        method: takes the place of the preset's own.
        defaults: by dotted name, instead of those of the method and below the overrides.

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
            values = _Bases(with_methods=method is None).read(str(source))
        values = upgraded(values)
        changes: list[tuple[str, Any]] = list((defaults or {}).items())
        given = [_override(override) for override in overrides]
        if method is not None:
            found = find_method(method)
            changes = [*found.before().items(), *found.defaults.items(), *changes]
            given += found.settings.items()
        return Config.model_validate(_changed(values, [*changes, *given]))
    except ValidationError as error:
        raise InputError(sentence(error, Config)) from None
    except RecursionError:
        raise InputError("the configuration is nested too deeply") from None


def _changed(values: dict[str, Any], changes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Settings with others put in by dotted name, one after the other."""
    kinds = [value for key, value in changes if key == "matching.kind"]
    if kinds:
        values = _merge(values, {"matching": {"kind": kinds[-1]}})
    for key, value in changes:
        _put(values, key.split("."), value, key)
    return values


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
    return key, _parse(text, what)


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


class _Bases:
    """Reads configurations by name, each once.

    Of bases that are methods, also those of bases, the last one counts, and takes the place of the
    others.

    Args:
        with_methods: whether bases that are methods count at all.
    """

    def __init__(self, with_methods: bool = True) -> None:
        self._with_methods = with_methods
        self._parsed: dict[str, dict[str, Any]] = {}
        self._count = self._length = 0

    def read(self, name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
        """A configuration on top of its bases.

        Args:
            name: a preset, or a file.
            above: those that it is a base of.
        """
        if name in above:
            names = " -> ".join((*above, name))
            raise InputError(f"configuration {shortened(name)!r} is its own base: {names}")
        self._count += 1
        if self._count > BASES:  # bases of bases can be exponentially many
            raise InputError(
                f"configuration {(*above, name)[0]!r} has more than {BASES} bases, with those of "
                "its bases: name fewer"
            )
        if name in methods():
            self._with_methods = False
            return _changed({}, list(methods()[name].everything().items()))
        if name not in self._parsed:
            text = _named_text(name)
            self._length += len(text)
            if self._length > CONFIG_BYTES:
                raise InputError(
                    f"configuration {(*above, name)[0]!r} has with its bases more than "
                    f"{CONFIG_BYTES:,} characters: name fewer"
                )
            self._parsed[name] = _parsed(text, name)
        values = dict(self._parsed[name])
        bases = values.pop("base", None) or []
        for base in reversed(bases if isinstance(bases, list) else [bases]):
            if not isinstance(base, str):
                raise InputError(f"configuration {shortened(name)!r}: a base is a name")
            if self._with_methods or base not in methods():
                values = _merge(self.read(base, (*above, name)), values)
        return values


def _named_text(name: str) -> str:
    """The YAML text of a preset or a file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return _read_text(path)
    known = _presets()
    if name not in known:
        raise InputError(
            f"unknown preset {shortened(name)!r}{suggestion(name, known)} "
            "('lors presets' lists them; a file must end in .yaml)"
        )
    return known[name]


def _parsed(text: str, name: str) -> dict[str, Any]:
    """The settings that a preset or a file gives itself, and what its bases are."""
    what = f"configuration {shortened(name)!r}"
    values = _parse(text, what)
    if values is not None and not isinstance(values, dict):
        raise InputError(f"{what} must be a mapping of settings")
    return values or {}


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with the changes put in, section by section.

    Another matcher keeps the options of the one before that it has too.
    """
    merged = dict(base)
    before, after = base.get("matching"), changes.get("matching")
    if isinstance(before, dict) and isinstance(after, dict):
        kind = after.get("kind", before.get("kind"))
        if isinstance(kind, str) and kind != before.get("kind", "trajectory"):
            kept = options_of(kind).model_fields
            base = {**base, "matching": {k: v for k, v in before.items() if k in kept}}
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

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level > FLOW_DEPTH:  # PyYAML takes seconds to find its own limit
            raise yaml.YAMLError("it is nested too deeply")
        super().fetch_flow_collection_start(token)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Bounded: reading a number takes time that grows with the square of its digits."""
        if len(node.value) > NUMBER_LENGTH:
            raise yaml.YAMLError(f"a number of {len(node.value):,} characters is too long")
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _Loader.construct_number)


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            raise OSError("there is no such file")
        if path.stat().st_size > CONFIG_BYTES:
            raise OSError(f"a configuration has at most {CONFIG_BYTES:,} bytes")
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(
            f"cannot read the configuration {shortened(str(path))!r}: {reason}"
        ) from None


def _parse(text: str, what: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise InputError(f"{what} is not valid YAML: it is nested too deeply") from None
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
