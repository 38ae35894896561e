"""Every setting with its type, default and meaning, read from the classes that check them."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lors.config.config import Config
from lors.config.names import MATCHERS
from lors.config.options import DEFAULT_MATCHER, options_of
from lors.system.errors import InputError, suggestion
from lors.system.registry import Registry

__all__ = ["DescribedSection", "DescribedSetting", "described", "sections"]

NAMES = {int: "integer", float: "number", str: "text", Path: "path"}
WIDEST = 10**9
"""Bounds beyond this only keep slips of the keyboard from overflowing."""


@dataclass(frozen=True)
class DescribedSetting:
    """One setting.

    Args:
        name: with its section, as an override has it.
        type: what it can be, for people.
        default: as in YAML, or ``required``.
        meaning: what it does.
    """

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class DescribedSection:
    """A section, or the options of one matcher.

    Args:
        name: as in ``lors settings NAME``; empty for what is in no section.
        about: what it is for.
        settings: those of its own, without those of sections within it.
    """

    name: str
    about: str
    settings: tuple[DescribedSetting, ...]


def described(name: str | None = None) -> list[DescribedSection]:
    """Every section, or those of one name and the settings of one name.

    >>> [setting.default for setting in described("distill.budget")[0].settings]
    ['100']

    Args:
        name: a section, ``matching.MATCHER``, or a setting; none: all.

    Raises:
        InputError: there is no such section or setting.
    """
    every = sections()
    if name is None:
        return every
    found = [each for each in every if f"{each.name}.".startswith(f"{name}.")]
    for section in every:
        settings = tuple(each for each in section.settings if each.name == name)
        if settings and section not in found:
            found.append(DescribedSection(section.name, section.about, settings))
    if not found:
        known = [section.name for section in every if section.name]
        known += [setting.name for section in every for setting in section.settings]
        raise InputError(
            f"unknown section or setting {name!r}{suggestion(name, known)} "
            "('lors settings' lists them)"
        )
    return found


def sections() -> list[DescribedSection]:
    """All settings by section, and the options of every matcher."""
    found = [*_of_model(Config, "", "Settings of the whole run, in no section.")]
    kinds = " | ".join(MATCHERS)
    kind = DescribedSetting("matching.kind", kinds, DEFAULT_MATCHER, "what is matched")
    place = next(i for i, section in enumerate(found) if section.name == "matching")
    found[place] = DescribedSection(
        "matching", "How the set is compared with real pairs. Options depend on the kind.", (kind,)
    )
    found[place + 1 : place + 1] = [
        section
        for name in MATCHERS
        for options in [options_of(name)]
        for section in _of_model(options, f"matching.{name}", _first_line(options), "matching")
    ]
    return found


def _of_model(
    model: type[BaseModel], name: str, about: str, prefix: str | None = None
) -> Iterable[DescribedSection]:
    """A section, and those within it."""
    prefix = name if prefix is None else prefix
    own: list[DescribedSetting] = []
    inner: list[DescribedSection] = []
    for field, info in model.model_fields.items():
        dotted = f"{prefix}.{field}" if prefix else field
        within = _section(info.annotation)
        if within is not None:
            inner += _of_model(within, dotted, _first_line(within))
        elif dotted != "matching.kind":
            meaning = info.description or ""
            own.append(DescribedSetting(dotted, _type(info), _default(info), meaning))
    return [DescribedSection(name, about, tuple(own)), *inner]


def _section(annotation: Any) -> type[BaseModel] | None:
    """The class of a section, if it is one."""
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return None if get_origin(annotation) is tuple else each
    return None


def _first_line(model: type[BaseModel]) -> str:
    """Of what the class says, or the one that it was made from."""
    texts = (each.__doc__ for each in model.__mro__)
    return next(filter(None, texts)).partition("\n")[0]


def _type(info: FieldInfo) -> str:
    return _annotated(info.annotation, info.metadata)


def _annotated(annotation: Any, notes: Iterable[Any]) -> str:
    """A type in words, with the names that it may have or the bounds that matter."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _annotated(inner, [*more, *notes])
    origin, inner_types = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, inner_types))
    if origin in (Union, types.UnionType):
        named = [_annotated(each, notes) for each in inner_types if each is not type(None)]
        return " | ".join([*named, *(["null"] if type(None) in inner_types else [])])
    if origin is tuple:
        each = _annotated(inner_types[0], ())
        return f"list of ({each})" if " | " in each else f"list of {each}"
    if origin is dict:
        return f"mapping from {_annotated(inner_types[0], ())} to {_annotated(inner_types[1], ())}"
    if annotation is bool:
        return "true | false"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "{" + ", ".join(annotation.model_fields) + "}"
    flat = [note for each in notes for note in getattr(each, "metadata", [each])]
    registry = next((r for note in flat if (r := _registry(note)) is not None), None)
    return " | ".join(registry) if registry is not None else NAMES[annotation] + _bounds(flat)


def _registry(note: Any) -> Registry[Any] | None:
    """Where a validator looks names up."""
    owner = getattr(getattr(note, "func", None), "__self__", None)
    return owner if isinstance(owner, Registry) else None


def _bounds(notes: Iterable[Any]) -> str:
    found = [
        f" {sign} {bound:g}"
        for note in notes
        for name, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"))
        if (bound := getattr(note, name, None)) is not None and abs(bound) < WIDEST
    ]
    return ",".join(found)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value)
