"""Settings by keyword, as Python calls give them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from lors.config.config import Config
from lors.config.options import options_of
from lors.system.errors import InputError, suggestion

__all__ = ["by_dotted_name"]


def by_dotted_name(keywords: Mapping[str, Any], matcher: str) -> dict[str, Any]:
    """Keywords as settings by dotted name.

    A keyword is a setting that only one section has (``iterations=50``), a dotted name
    (``**{"distill.iterations": 50}``), or a section with some of its settings
    (``evaluate={"epochs": 20}``).

    >>> by_dotted_name({"iterations": 50, "seed": 1, "evaluate": {"epochs": 20}}, "trajectory")
    {'distill.iterations': 50, 'seed': 1, 'evaluate.epochs': 20}

    Args:
        keywords: as they were given.
        matcher: whose options count.

    Raises:
        InputError: there is no such setting, or several sections have one of that name.
    """
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        found |= _flat(_dotted(name, matcher), value)
    return found


def _dotted(name: str, matcher: str) -> str:
    if "." in name or name in Config.model_fields:
        return name
    known = _leaves(options_of(matcher))
    places = known.get(name, [])
    if not places:
        raise InputError(f"unknown option {name!r}{suggestion(name, known)}")
    if len(places) > 1:
        section, _, leaf = places[0].rpartition(".")
        raise InputError(
            f"option {name!r} could be {' or '.join(places)}: write {section}={{{leaf!r}: …}}"
        )
    return places[0]


@cache
def _leaves(options: type[BaseModel]) -> dict[str, list[str]]:
    """The dotted names of every setting, by the last part of its name."""
    found: dict[str, list[str]] = {}
    for section, field in Config.model_fields.items():
        model = options if section == "matching" else field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            for leaf in model.model_fields:
                found.setdefault(leaf, []).append(f"{section}.{leaf}")
    return found


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A section's mapping as single settings; any other value as it is."""
    section = _section(name)
    if section is None or not isinstance(value, Mapping):
        return {name: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= _flat(f"{name}.{key}", inner)
    return found


def _section(name: str) -> type[BaseModel] | None:
    """The model of a section by its dotted name; None for what is no section."""
    model: Any = Config
    for step in name.split("."):
        if step == "matching":
            return BaseModel
        field = getattr(model, "model_fields", {}).get(step)
        if field is None:
            return None
        options = (field.annotation, *get_args(field.annotation))
        model = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)
    return model
