"""Plugins: modules outside the package that register things of their own.

Installed packages name theirs as entry points, all of which are imported; other modules are named
by ``--plugin MODULE`` or the environment variable ``LORS_PLUGINS``, which worker processes inherit.
Nothing that a file says causes an import.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from lors.config.registering import GROUPS, register
from lors.system.errors import InputError, LorsError

__all__ = ["VARIABLE", "add_plugins", "load_plugins", "named_plugins"]

VARIABLE = "LORS_PLUGINS"
"""The modules that ``--plugin`` named, with commas between them."""

_begun: list[bool] = []


def load_plugins(warn: Callable[[str], None] | None = None) -> None:
    """Import every plugin, the first time that it is called in a process.

    An installed package that cannot be imported is a warning: a user may not know of it. A module
    that was asked for by name is an error.

    Args:
        warn: shows a warning; default: as Python does.

    Raises:
        InputError: a module in ``LORS_PLUGINS`` cannot be imported.
    """
    if _begun:  # also while plugins are being imported, which ask for names
        return
    _begun.append(True)
    for sentence in _installed():
        (warn or _warn)(sentence)
    try:
        for module in named_plugins():
            _import(module)
    except InputError:
        _begun.clear()
        raise


def add_plugins(modules: Sequence[str]) -> None:
    """Import modules as plugins, here and in all processes that this one will start.

    Raises:
        InputError: one cannot be imported; it is then not added.
    """
    for module in modules:
        _import(module)
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*named_plugins(), *modules]))


def named_plugins() -> list[str]:
    """The modules that ``LORS_PLUGINS`` names."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _warn(sentence: str) -> None:
    """Warn once, not again in every worker process."""
    import multiprocessing  # here, because every command comes by

    if multiprocessing.parent_process() is None:
        warnings.warn(sentence, stacklevel=4)


def _installed() -> Iterator[str]:
    """Register what installed packages offer; a sentence for each that cannot be imported."""
    from importlib.metadata import distributions  # here, because it takes a tenth of a second

    for package in distributions():
        if "[lors." not in (package.read_text("entry_points.txt") or ""):
            continue  # without parsing the files of hundreds of packages
        for point in package.entry_points:
            if point.group not in GROUPS:
                continue
            try:
                thing = point.load()
                if not isinstance(thing, ModuleType):  # a module registers its things itself
                    register(GROUPS[point.group], point.name, thing)
            except Exception as error:  # whatever a stranger's module raises
                yield (
                    f"the package {package.name!r} offers {point.group.replace('.', ' ')}, but "
                    f"{point.value} {_failure(error)}: update or uninstall it"
                )


def _import(name: str) -> None:
    """Import a module of the current folder or of an installed package."""
    if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            f"--plugin takes the name of a module, as in --plugin my_module for my_module.py, "
            f"not {name!r}"
        )
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that no file here hides an installed package
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InputError(
                f"there is no module {name!r} for --plugin, neither in {here} nor installed"
            ) from None
        raise InputError(f"the plugin {name!r} {_failure(error)}") from error
    except Exception as error:  # whatever a user's module raises
        raise InputError(f"the plugin {name!r} {_failure(error)}") from error
    _check_unhidden(name, module, Path(here))


def _check_unhidden(name: str, module: ModuleType, here: Path) -> None:
    """Refuse an installed module where one of the same name lies in the current folder."""
    first = name.partition(".")[0]
    mine = [path for path in (here / f"{first}.py", here / first / "__init__.py") if path.is_file()]
    found = getattr(module, "__file__", None)
    if mine and (found is None or here.resolve() not in Path(found).resolve().parents):
        raise InputError(
            f"--plugin {name} is {mine[0]} and also {found or 'a part of Python'}: rename yours"
        )


def _failure(error: Exception) -> str:
    """What went wrong in an import, and where in the module."""
    if isinstance(error, LorsError):
        return f"cannot be used: {error}"
    reason = str(error)
    if isinstance(error, SyntaxError):
        reason, where = error.msg, f"{error.filename}, line {error.lineno}"
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f[0]]
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    text = f"cannot be imported: {type(error).__name__}: {reason}"
    return f"{text} ({where})" if where else text
