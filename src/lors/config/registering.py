"""Things of one's own by name: from a notebook, a module or a package outside lors.

>>> @register("loss", "half")
... def half(logits, similarity): ...
>>> LOSSES.check("half")
'half'
>>> LOSSES.remove("half")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lors.config.keywords import by_dotted_name
from lors.config.matching import MatchingOptions
from lors.config.methods import PLAIN, Method, add_method
from lors.config.names import (
    HEADS,
    LOSSES,
    MATCHERS,
    SELECTIONS,
    SIMILARITIES,
    SOURCES,
    STARTS,
    TEXT_TRUNKS,
    TRACKERS,
)
from lors.system.errors import InputError, choose
from lors.system.registry import Registry

__all__ = ["GROUPS", "loss", "matcher", "register"]

T = TypeVar("T")

REGISTRIES: Mapping[str, Registry[Any]] = {
    "matcher": MATCHERS,
    "loss": LOSSES,
    "similarity": SIMILARITIES,
    "start": STARTS,
    "selection": SELECTIONS,
    "head": HEADS,
    "text trunk": TEXT_TRUNKS,
    "source": SOURCES,
    "tracker": TRACKERS,
}

GROUPS: Mapping[str, str] = {
    "lors.matchers": "matcher",
    "lors.losses": "loss",
    "lors.similarities": "similarity",
    "lors.starts": "start",
    "lors.selections": "selection",
    "lors.heads": "head",
    "lors.text_trunks": "text trunk",
    "lors.sources": "source",
    "lors.trackers": "tracker",
}
"""The groups of entry points in which a package offers things, and the kind of each."""

ALIASES: Mapping[str, str] = {
    "data source": "source",
    "text": "text trunk",
    **{group.removeprefix("lors.").replace("_", " "): kind for group, kind in GROUPS.items()},
}

CALLED_WITH: Mapping[str, str] = {
    "loss": "logits, similarity",
    "start": "material",
    "selection": "pool, count",
    "head": "inputs, outputs",
    "source": "config, progress",
    "tracker": "out, config, iteration",
    "matcher": "setting, options",
}
"""What a thing of each kind is called with; a class is called to make one."""

HAS: Mapping[str, tuple[str, ...]] = {
    "matcher": ("backward",),
    "similarity": ("forward", "from_config", "stored"),
    "text trunk": ("build", "restore", "state", "embed"),
    "tracker": ("metrics", "picture", "table", "end"),
}
"""The methods that a class of each kind has."""


def register(kind: str, name: str, thing: Any = None) -> Any:
    """Give a thing of one's own a name, under which every setting finds it.

    A decorator, or a call with the thing. The same name again replaces it, as when a notebook's
    cell is run twice.

    >>> @register("start", "first")
    ... def first_pairs(material):
    ...     drawn, captions = material.drawn
    ...     return material.start(drawn[: material.count], captions[: material.count])
    >>> import lors
    >>> small = lors.distill(images, texts, pairs=9, init="first", progress=False, **quick)
    >>> small.config.distill.init
    'first'
    >>> STARTS.remove("first")

    Args:
        kind: matcher, loss, similarity, start, selection, head, text trunk, source or tracker.
        name: lower-case letters, digits, ``-`` and ``_``.
        thing: the function or class; left out where this is a decorator. A source may be a function
            of the section ``data`` and a progress, as ``lors.data.source.Source`` takes it.

    Raises:
        InputError: it is no such thing, or lors has one of that name.
    """
    kind = kind.lower().replace("_", " ").replace("-", " ")
    kind = ALIASES.get(kind, kind)
    keep = choose(REGISTRIES, kind, "kind of thing").register(name)

    def checked(thing: T) -> T:
        _check(kind, name, thing)
        return keep(thing)

    return checked if thing is None else checked(thing)


def matcher(
    name: str, *, label: str | None = None, about: str = "", paper: str = "", **settings: Any
) -> Callable[[type[T]], type[T]]:
    """A decorator that makes a class a matcher, and a method of the same name.

    >>> @matcher("mine", loss="wbce", similarity="lowrank")
    ... class Mine:
    ...     def __init__(self, setting, options): ...
    ...     def backward(self, synthetic, generator): ...
    >>> from lors.config.methods import find_method, remove_method
    >>> find_method("mine").defaults["similarity.kind"]
    'lowrank'
    >>> MATCHERS.remove("mine"), remove_method("mine")
    (None, None)

    Args:
        name: in settings (``matching.kind=mine``) and comparisons (``--methods mine``).
        label: what tables call it; default: the name.
        about: what it does, in a sentence.
        paper: where to read about it.
        settings: what suits it, for users to change; by keyword, as of ``lors.distill``.
            A similarity may be given by its kind alone. Default: the loss nce and S = I.

    Raises:
        InputError: it is no matcher, lors has a matcher or a method of that name, or there is no
            such setting.
    """

    def kept(cls: type[T]) -> type[T]:
        register("matcher", name, cls)
        try:
            suits = by_dotted_name(_sections(settings), name)
            defaults = {**PLAIN, **suits}
            add_method(Method(name, label or name, {"matching.kind": name}, defaults, about, paper))
        except InputError:
            MATCHERS.remove(name)
            raise
        return cls

    return kept


def loss(name: str) -> Callable[[T], T]:
    """A decorator that makes a function of logits and similarity a loss by name.

    >>> @loss("squared")
    ... def squared(logits, similarity):
    ...     return (logits - 10 * similarity).square().mean()
    >>> import lors
    >>> small = lors.distill(images, texts, pairs=9, loss="squared", progress=False, **quick)
    >>> small.config.loss
    'squared'
    >>> LOSSES.remove("squared")

    Args:
        name: in settings (``loss=squared``) and comparisons.
    """
    return register("loss", name)


def _sections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With ``similarity="full"`` as short for ``similarity={"kind": "full"}``."""
    return {
        f"{key}.kind" if key == "similarity" and isinstance(value, str) else key: value
        for key, value in settings.items()
    }


def _check(kind: str, name: str, thing: Any) -> None:
    """Refuse what cannot be a thing of that kind, as far as it shows without calling it."""
    what = f"the {kind} {name!r}"
    if kind == "source" and not callable(thing):
        if not callable(getattr(thing, "read", None)):
            raise InputError(f"{what} must be a function or a lors.data.source.Source")
        return
    for needed in HAS.get(kind, ()):
        if not inspect.isclass(thing) or not callable(getattr(thing, needed, None)):
            raise InputError(f"{what} must be a class with the method {needed!r}")
    if inspect.isabstract(thing):
        missing = ", ".join(sorted(thing.__abstractmethods__))
        raise InputError(f"{what} must define {missing}")
    if not callable(thing):
        raise InputError(f"{what} must be a function or a class, not {type(thing).__name__}")
    if kind in CALLED_WITH:
        _check_call(thing, CALLED_WITH[kind], what)
    if kind == "matcher":
        _check_call(thing.backward, "self, synthetic, generator", f"backward of {what}")
        options = getattr(thing, "Options", MatchingOptions)
        if not (inspect.isclass(options) and issubclass(options, MatchingOptions)):
            raise InputError(f"Options of {what} must be a subclass of lors.config.MatchingOptions")
    if kind == "text trunk":
        for flag in ("fitted", "trains"):
            if not isinstance(getattr(thing, flag, None), bool):
                raise InputError(f"{what} must say {flag} = True or False")


def _check_call(thing: Any, arguments: str, what: str) -> None:
    """Refuse what cannot be called with so many arguments."""
    try:
        inspect.signature(thing).bind(*arguments.split(", "))
    except TypeError as error:
        raise InputError(f"{what} must take ({arguments}): {error}") from None
    except ValueError:  # a class of a compiled module does not tell
        pass
