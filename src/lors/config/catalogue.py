"""The presets that come with the package.

Each file below ``presets/`` holds a group of them by name, each as a configuration file would be.
One with ``pairs`` stands for a preset of each of these sizes: ``$pairs`` is the size, wherever it
stands in its name and settings, and what a size changes stands below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from lors.config.merging import merged
from lors.config.parsing import package_data
from lors.system.errors import InputError, shortened, suggestion

__all__ = ["find_preset", "groups", "presets", "sized"]

FILES = ("start", "own", "flickr8k", "flickr30k", "coco")
"""In the order of ``lors presets``."""


@cache
def groups() -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """The title of each group, and what each of its presets says itself, by name.

    >>> groups()["Your data: embeddings or photos"]["features"]["base"]
    ['features-lors', 'hindsight']
    """
    texts = [package_data("lors.config", f"presets/{name}.yaml") for name in FILES]
    return {
        text["title"]: {
            name: settings
            for template, entry in text["presets"].items()
            for name, settings in sized(template, entry)
        }
        for text in texts
    }


def presets() -> dict[str, str]:
    """What every preset says itself, as YAML, by name."""
    return {
        name: yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        for name, settings in _by_name().items()
    }


def find_preset(name: str) -> dict[str, Any]:
    """What the preset of that name says itself, and what its bases are.

    Raises:
        InputError: there is no such preset.
    """
    if name not in _by_name():
        raise InputError(
            f"unknown preset {shortened(name)!r}{suggestion(name, _by_name())} "
            "('lors presets' lists them; a file must end in .yaml)"
        )
    return _by_name()[name]


@cache
def _by_name() -> dict[str, dict[str, Any]]:
    return {name: preset for group in groups().values() for name, preset in group.items()}


def sized(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an entry stands for: itself, or one entry for each of its ``pairs``.

    >>> sizes = {100: {"rank": 10}, 200: {"rank": 5}}
    >>> dict(sized("lors-$pairs", {"base": "mine", "budget": "$pairs", "pairs": sizes}))["lors-200"]
    {'base': 'mine', 'budget': 200, 'rank': 5}

    Args:
        name: of the entry.
        entry: its ``pairs`` are a list of sizes, or a mapping from each to what it changes.
    """
    shared = {key: value for key, value in entry.items() if key != "pairs"}
    sizes = entry.get("pairs")
    if sizes is None:
        yield name, shared
    else:
        changes = sizes if isinstance(sizes, Mapping) else {size: {} for size in sizes}
        for size, own in changes.items():
            yield _filled(name, size), _filled(merged(shared, own), size)


def _filled(value: Any, size: int) -> Any:
    """The value with the size in the place of ``$pairs``."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, size) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, size) for inner in value]
    if isinstance(value, str):
        return size if value == "$pairs" else value.replace("$pairs", str(size))
    return value
