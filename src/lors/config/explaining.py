"""A preset with its settings and which of its bases each comes from, and what a method sets."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from lors.config.bases import Bases
from lors.config.config import Config
from lors.config.methods import Method

__all__ = ["explained", "explained_method"]


def explained(name: str) -> str:
    """A preset on top of its bases, as YAML that is a configuration by itself.

    What a base says has its name behind it; settings that nobody names have their defaults.

    >>> print(explained("features").partition("description")[0])
    # features-lors, then hindsight, then features: each changes those before it
    <BLANKLINE>

    Raises:
        InputError: there is no such preset.
    """
    bases = Bases()
    values = bases.read(name)
    layers: dict[str, Any] = {}
    for layer, own in bases.layers:
        layers.pop(layer, None)  # of one that was read twice, the last time counts
        layers[layer] = own
    head = ""
    if len(layers) > 1:
        text = f"{', then '.join(layers)}: each changes those before it"
        head = textwrap.fill(text, 78, initial_indent="# ", subsequent_indent="# ") + "\n"
    ordered = {key: values[key] for key in Config.model_fields if key in values} | values
    lines = list(_lines(ordered, layers, name))
    width = max((len(text) for text, origin in lines if origin), default=0)
    body = "".join(f"{text:<{width}}  # {by}\n" if by else f"{text}\n" for text, by in lines)
    return head + body


def explained_method(method: Method) -> str:
    """What a method is, where to read about it, and what it sets.

    >>> from lors.config import find_method
    >>> print(explained_method(find_method("lors-r5")).splitlines()[0])
    LoRS, r = 5: LoRS with a similarity of rank 5.
    """
    lines = [f"{method.label}: {method.about}", *filter(None, [method.paper]), "What it is:"]
    lines += [f"  {key}={_inline(value)}" for key, value in method.settings.items()]
    if method.defaults:
        lines.append("What suits it, for you to change:")
        lines += [f"  {key}={_inline(value)}" for key, value in method.defaults.items()]
    return "\n".join(lines)


def _lines(
    values: Mapping[str, Any], layers: Mapping[str, Any], name: str, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Lines of YAML, each with the base that says so; empty where it is the preset itself."""
    indent = "  " * len(path)
    for key, value in values.items():
        steps = (*path, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:", ""
            yield from _lines(value, layers, name, steps)
        else:
            origin = [layer for layer, own in layers.items() if _has(own, steps)][-1]
            yield f"{indent}{key}: {_inline(value)}", "" if origin == name else origin


def _has(values: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(values, Mapping) or step not in values:
            return False
        values = values[step]
    return True


def _inline(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("\n").removesuffix("\n...")
