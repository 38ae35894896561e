"""Configurations by name, on top of their bases.

A configuration may name a base, or several of which each changes the one before, as in
``base: [flickr8k-heads-100, hindsight]``: the data and encoders of a preset, and a method.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from lors.config.catalogue import find_preset
from lors.config.merging import changed, merged
from lors.config.methods import Method, methods
from lors.config.parsing import CONFIG_BYTES, parse, read_text
from lors.system.errors import InputError, shortened

__all__ = ["Bases"]

BASES = 100
"""The most configurations that one may be put together from."""


class Bases:
    """Reads configurations by name, each once.

    Of several methods the last one counts, and takes the place of the others: nothing of them is
    left.

    Args:
        with_methods: whether methods count at all.

    Attributes:
        layers: the configurations that were read and count, each after its bases, with what each
            says itself.
    """

    def __init__(self, with_methods: bool = True) -> None:
        self.layers: list[tuple[str, dict[str, Any]]] = []
        self._with_methods = with_methods
        self._parsed: dict[str, dict[str, Any]] = {}
        self._count = self._length = 0

    def read(self, name: str) -> dict[str, Any]:
        """A configuration on top of its bases.

        Args:
            name: a preset, a method, or a file.

        Raises:
            InputError: there is none, or it is its own base, or has too many.
        """
        self._collect(name, ())
        last = [place for place, (name, _) in enumerate(self.layers) if name in methods()][-1:]
        counting = last if self._with_methods else []
        self.layers = [
            (name, own)
            for place, (name, own) in enumerate(self.layers)
            if name not in methods() or place in counting
        ]
        values: dict[str, Any] = {}
        for name, own in self.layers:
            if name in methods():
                own = _settings(methods()[name].in_reading_of(values.get("loss")))
            values = merged(values, own)
        return values

    def _collect(self, name: str, above: tuple[str, ...]) -> None:
        """Put a configuration on the layers, after its bases.

        Args:
            name: a preset, a method, or a file.
            above: those that it is a base of.
        """
        self._check(name, above)
        values = self._own(name, (*above, name)[0])
        bases = values.pop("base", None) or []
        for base in bases if isinstance(bases, list) else [bases]:
            if not isinstance(base, str):
                raise InputError(f"configuration {shortened(name)!r}: a base is a name")
            self._collect(base, (*above, name))
        self.layers.append((name, values))

    def _check(self, name: str, above: tuple[str, ...]) -> None:
        if name in above:
            names = " -> ".join((*above, name))
            raise InputError(f"configuration {shortened(name)!r} is its own base: {names}")
        self._count += 1
        if self._count > BASES:  # bases of bases can be exponentially many
            raise InputError(
                f"configuration {(*above, name)[0]!r} has more than {BASES} bases, with those of "
                "its bases: name fewer"
            )

    def _own(self, name: str, first: str) -> dict[str, Any]:
        """What a configuration says itself, and what its bases are."""
        if name in methods():
            return _settings(methods()[name])
        path = Path(name)
        if path.suffix not in (".yaml", ".yml"):
            return copy.deepcopy(find_preset(name))
        if name not in self._parsed:
            text = read_text(path)
            self._length += len(text)
            if self._length > CONFIG_BYTES:
                raise InputError(
                    f"configuration {first!r} has with its bases more than "
                    f"{CONFIG_BYTES:,} characters: name fewer"
                )
            self._parsed[name] = _mapping(parse(text, _what(name)), name)
        return copy.deepcopy(self._parsed[name])


def _settings(method: Method) -> dict[str, Any]:
    return changed({}, list(method.everything().items()))


def _mapping(values: Any, name: str) -> dict[str, Any]:
    if values is not None and not isinstance(values, dict):
        raise InputError(f"{_what(name)} must be a mapping of settings")
    return values or {}


def _what(name: str) -> str:
    return f"configuration {shortened(name)!r}"
