"""Things by name: those of the package, imported when first asked for, and a user's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import isfunction
from typing import Any, Generic, TypeVar

from lors.system.errors import InputError, suggestion

__all__ = ["FROM_PLUGIN", "OWN", "Registry"]

T = TypeVar("T")
OWN = "own:"
FROM_PLUGIN = " (from a plugin? give --plugin MODULE)"
"""What to try with a name that nobody knows: it may be that of a user's own module."""
NAME = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?")


class Registry(Mapping[str, T], Generic[T]):
    """Looks things up by the names that settings use.

    Names are known without importing anything, so that a misspelt one is refused at once.

    >>> shapes = Registry("shape", {"path": "pathlib:PurePath"})
    >>> shapes["path"].__name__
    'PurePath'
    >>> @shapes.register("mine")
    ... def mine(): ...
    >>> sorted(shapes)
    ['mine', 'path']

    Args:
        what: one of the things, in a word, for messages.
        places: where those of the package are, as ``module:attribute``.
        plugins: imports the modules that may register more, when a name is first asked for; it must
            do nothing the next time.
        maker: where to find what makes one of the things from a plain function, if that is allowed.
    """

    def __init__(
        self,
        what: str,
        places: Mapping[str, str],
        plugins: Callable[[], None] | None = None,
        maker: str | None = None,
    ) -> None:
        self.what, self._places = what, dict(places)
        self._plugins, self._maker = plugins, maker
        self._own: dict[str, T] = {}

    def _known(self) -> dict[str, T]:
        """Things of one's own, with those of plugins."""
        if self._plugins is not None:
            self._plugins()
        return self._own

    def __getitem__(self, name: str) -> T:
        own = self._known()
        if name not in own:
            return _at(self._places[name])
        if self._maker is not None and isfunction(own[name]):
            own[name] = _at(self._maker)(own[name])
        return own[name]

    def give(self, thing: T, name: str) -> str:
        """Keep a thing that a caller has given, without registering it; returns its name.

        The name begins with ``own:``. A file may hold such a name where the thing is not there: it
        can be read, but not used.
        """
        self._own[f"{OWN}{name}"] = thing
        return f"{OWN}{name}"

    def place(self, name: str) -> str:
        """Where one of the package is, as ``module:attribute``; it is not imported."""
        return self._places[name]

    def is_own(self, name: str) -> bool:
        """Whether the thing of that name is not the package's."""
        return name in self._own

    def own(self) -> list[str]:
        """The names that were registered, here and by plugins."""
        return [name for name in self._known() if not name.startswith(OWN)]

    def __contains__(self, name: object) -> bool:
        return name in self._known() or name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter([*self._places, *self._known()])

    def __len__(self) -> int:
        return len(self._places) + len(self._known())

    def check(self, name: str) -> str:
        """The name, if there is such a thing.

        Raises:
            InputError: there is none; the message has the nearest name.
        """
        if name not in self and not name.startswith(OWN):
            more = FROM_PLUGIN if self._plugins is not None else ""
            known = [each for each in self if not each.startswith(OWN)]
            raise InputError(f"unknown {self.what} {name!r}{suggestion(name, known)}{more}")
        return name

    def choose(self, name: str) -> T:
        """The thing of that name.

        Raises:
            InputError: there is none; the message has the nearest name.
            Or it was given in Python, to another process.
        """
        self.check(name)
        if name not in self:
            raise InputError(f"the {self.what} {name!r} was given in Python: give it again")
        return self[name]

    def register(self, name: str) -> Callable[[Any], Any]:
        """A decorator that gives a thing of one's own a name, under which every setting finds it.

        The same name again replaces it, as when a notebook's cell is run twice.

        Raises:
            InputError: the package has a thing of that name, or it is no name.
        """
        if name in self._places:
            raise InputError(f"the {self.what} {name!r} exists in lors: choose another name")
        if not NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot name a {self.what}: use lower-case letters, digits, - and _"
            )

        def keep(thing: Any) -> Any:
            self._own[name] = thing
            return thing

        return keep

    def remove(self, name: str) -> None:
        """Forget a thing of one's own."""
        self._own.pop(name, None)


def _at(place: str) -> Any:
    """What is at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
