"""A digest of what a Python object is: its code, its settings and its numbers.

Caches and experts are named by settings. An object that a caller gives in Python has none, so what
it is has to be seen in the object itself: two that could compute different things must differ.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["content_digest"]

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), torch.dtype, torch.device)
LIBRARIES = {"builtins", "lors", "numpy", "timm", "torch", "torchvision", "transformers"}
SKIPPED = {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "training"}
"""Of classes and modules: what says nothing about what they compute in evaluation mode."""


def content_digest(*things: Any) -> str:
    """16 hexadecimal digits that are the same for the same code, settings and numbers.

    Code is followed into the functions, classes and variables that it uses, as far as they are the
    caller's own; what an installed library holds counts by its name.

    >>> content_digest(nn.Linear(2, 1)) == content_digest(nn.Linear(2, 1))  # other weights
    False
    >>> content_digest(lambda x: x + 1) == content_digest(lambda x: x + 2)
    False
    >>> content_digest([1, "a"]) == content_digest([1, "a"])
    True
    """
    reader = _Reader()
    for thing in things:
        reader.add(thing)
    return reader.digest.hexdigest()[:16]


class _Reader:
    """Walks through an object and all it holds, each part once."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []  # so that no two parts have one identity

    def put(self, *parts: str | bytes) -> None:
        for part in parts:
            raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            self.digest.update(len(raw).to_bytes(8, "big") + raw)

    def add(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self.put(type(value).__name__, repr(value))
            return
        if id(value) in self.seen:
            self.put("again", str(self.seen[id(value)]))
            return
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        self.put(type(value).__qualname__)
        if isinstance(value, Tensor):
            flat = value.detach().cpu().contiguous().reshape(-1)
            self._array(flat.view(torch.uint8).numpy(), value.dtype)
            self.put(str(tuple(value.shape)))
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._array(np.ascontiguousarray(value), value.dtype)
            self.put(str(value.shape))
        elif isinstance(value, (Mapping, list, tuple, set, frozenset, np.ndarray)):
            self._collection(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            self._function(value)
        elif isinstance(value, (property, staticmethod, classmethod)):
            for name in ("fget", "fset", "fdel", "__func__"):
                self.add(getattr(value, name, None))
        elif isinstance(value, types.ModuleType):
            self.put(value.__name__)
        else:
            self._object(value)

    def _array(self, values: np.ndarray, dtype: Any) -> None:
        self.put(str(dtype), hashlib.sha256(values.reshape(-1).view(np.uint8).data).digest())

    def _collection(self, value: Any) -> None:
        if isinstance(value, (set, frozenset)):
            self.put(*sorted(content_digest(item) for item in value))
            return
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in pairs:
            self.add(key)
            self.add(item)

    def _class(self, cls: type) -> None:
        self.put(cls.__qualname__)
        if _of_a_library(cls.__module__):
            self.put(cls.__module__)
            return
        for base in cls.__bases__:
            self.add(base)
        for name, value in sorted(vars(cls).items()):
            if name not in SKIPPED:
                self.put(name)
                self.add(value)

    def _function(self, function: Any) -> None:
        if isinstance(function, types.MethodType):
            self.add(function.__self__)
            self.add(function.__func__)
        elif isinstance(function, functools.partial):
            for part in (function.func, function.args, function.keywords):
                self.add(part)
        elif (
            _of_a_library(function.__module__)
            and "<" not in function.__qualname__
            and not _is_executed(function)
        ):
            self.put(str(function.__module__), function.__qualname__)
        else:
            self.put(*_code(function))
            self.add((function.__defaults__, function.__kwdefaults__))
            for cell in function.__closure__ or ():
                self.add(_content_of_cell(cell))
            for name, value in _used_globals(function):
                self.put(name)
                self.add(value)

    def _object(self, value: Any) -> None:
        self.add(type(value))
        held = {k: v for k, v in getattr(value, "__dict__", {}).items() if k not in SKIPPED}
        if isinstance(value, Path) or _of_a_library(type(value).__module__, only_python=True):
            self.put(_without_address(value))
        elif held or isinstance(value, nn.Module):
            self.add(held)
        elif hasattr(value, "pattern"):  # a pattern of the package regex, whose parts vary
            self.add((value.pattern, getattr(value, "flags", None)))
        else:
            self._add_reduced(value)

    def _add_reduced(self, value: Any) -> None:
        """What Python would make it again from."""
        try:
            parts = value.__reduce_ex__(4)
        except Exception:  # whatever a class says that cannot be taken apart
            parts = _without_address(value)
        self.add(parts)


def _is_executed(function: Any) -> bool:
    """Whether a function was made by ``exec`` without a module: the caller's own, too."""
    return isinstance(function, types.FunctionType) and function.__module__ is None


def _of_a_library(module: str | None, only_python: bool = False) -> bool:
    """Whether code of this module is installed: the caller did not write it."""
    if module is None or module.partition(".")[0] in sys.stdlib_module_names | {"builtins"}:
        return module != "__main__"
    if only_python:
        return False
    if module.partition(".")[0] in LIBRARIES:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and any(
        Path(file).is_relative_to(sysconfig.get_path(name)) for name in ("purelib", "platlib")
    )


def _code(function: types.FunctionType) -> Iterator[bytes]:
    """The source, which is the same in every version of Python; else what was made of it."""
    code = function.__code__
    try:
        yield inspect.getsource(function).encode()
    except (OSError, TypeError):
        yield code.co_code
    # Several lambdas may stand in one line, and a cell that ran before may have no source.
    for part in _all_codes(code):
        constants = [c for c in part.co_consts if isinstance(c, PLAIN)]
        yield repr((part.co_names, constants)).encode()


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _all_codes(constant)


def _used_globals(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function's code takes from outside of it, by name."""
    codes = list(_all_codes(function.__code__))
    loaded = {
        str(step.argval)
        for code in codes
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    attributes = sorted({name for code in codes for name in code.co_names})
    for name in sorted(loaded & function.__globals__.keys()):
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, types.ModuleType) and not _of_a_library(value.__name__):
            for attribute in attributes:
                if hasattr(value, attribute):
                    yield attribute, getattr(value, attribute)


def _content_of_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a function that calls itself, not yet named
        return None


def _without_address(value: Any) -> str:
    shown = repr(value)
    return type(value).__qualname__ if " at 0x" in shown else shown
