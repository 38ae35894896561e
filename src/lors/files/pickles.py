"""What a pickle of tensors says, read without doing any of it.

A file of ``torch.save`` is a ZIP archive with a pickle in it: a small program that puts objects
together. ``described`` follows that program with symbols in the place of objects: plain lists,
dictionaries and numbers stay what they are, a tensor becomes a ``TensorSpec``, and anything else is
refused. So names, shapes and sizes are known before torch reads a byte, and nothing is called.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Stored", "TensorSpec", "described"]

OPERATIONS = 4_000_000
"""A pickle of a hundred thousand tensors has fewer."""

DIMENSIONS, LARGEST = 8, 2**40

DTYPES = {
    "FloatStorage": ("float32", 4),
    "DoubleStorage": ("float64", 8),
    "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2),
}
"""The types of numbers that are read, with their bytes."""


class Stored(NamedTuple):
    """A record of the archive that holds numbers: its type, name and how many it should hold."""

    dtype: str
    key: str
    length: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.length * dict(DTYPES.values())[self.dtype]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor as a pickle describes it, within its record."""

    stored: Stored
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return math.prod(self.shape)


class _Global(str):
    """A name that the pickle would have imported."""


class _Mark:
    """Where a list of arguments begins."""


def described(pickled: bytes) -> Any:
    """What a pickle would make: lists, dictionaries, texts, numbers, and specs of tensors.

    Raises:
        ValueError: it holds something else, or is no pickle of ``torch.save``.
    """
    machine = _Machine()
    for number, (operation, argument, _) in enumerate(pickletools.genops(pickled)):
        if number >= OPERATIONS:
            raise ValueError("it holds more than tensors could need")
        step = _STEPS.get(operation.name)
        if step is None:
            raise ValueError(f"it holds more than tensors (a pickle with {operation.name})")
        try:
            step(machine, argument)
        except (IndexError, KeyError):
            raise ValueError("its pickle is damaged") from None
        if operation.name == "STOP":
            if not machine.stack or isinstance(machine.stack[-1], _Mark):
                raise ValueError("its pickle is damaged")
            return machine.stack[-1]
    raise ValueError("its pickle has no end")


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def pop(self) -> Any:
        found = self.stack.pop()
        if isinstance(found, _Mark):
            raise IndexError
        return found

    def since_mark(self) -> list[Any]:
        found = []
        while not isinstance(top := self.stack.pop(), _Mark):
            found.append(top)
        return found[::-1]

    def last(self, kind: type) -> Any:
        """What lies on top of the stack, to be added to."""
        if type(self.stack[-1]) is not kind:
            raise ValueError("its pickle is damaged")
        return self.stack[-1]


def _set_items(machine: _Machine, items: list[Any]) -> None:
    into = machine.last(dict)
    if len(items) % 2 or not all(type(key) is str for key in items[::2]):
        raise ValueError("it holds a dictionary whose keys are not names")
    into.update(zip(items[::2], items[1::2], strict=True))


def _stored(machine: _Machine, _: Any) -> None:
    """A persistent id names a record of numbers."""
    match machine.pop():
        case ("storage", _Global() as kind, str(key), str(), int(count)):
            library, _, name = kind.partition(" ")
            if library != "torch" or name not in DTYPES:
                raise ValueError(f"it holds numbers of the type {name[:40]}, not floating-point")
            if not 0 < count < LARGEST:
                raise ValueError(f"it holds {count} numbers in one place")
            machine.stack.append(Stored(DTYPES[name][0], key, count))
        case _:
            raise ValueError("its pickle refers to something that is no tensor")


def _reduced(machine: _Machine, _: Any) -> None:
    """A call: only the two that make tensors, and an empty dictionary of hooks."""
    arguments, what = machine.pop(), machine.pop()
    if not isinstance(what, _Global) or not isinstance(arguments, tuple):
        raise ValueError("its pickle is damaged")
    match str(what), arguments:
        case "torch._utils _rebuild_tensor_v2", (Stored() as stored, offset, size, stride, *_):
            machine.stack.append(_spec(stored, offset, size, stride))
        case "torch._utils _rebuild_parameter", (TensorSpec() as tensor, bool(), _):
            machine.stack.append(tensor)
        case "collections OrderedDict", ():
            machine.stack.append({})
        case name, _:
            raise ValueError(
                f"it holds a call of {name[:60].replace(' ', '.')!r}, not only tensors"
            )


def _spec(stored: Stored, offset: Any, size: Any, stride: Any) -> TensorSpec:
    """A tensor, where every number of it has a place of its own in its record."""
    if type(offset) is not int or not _whole(size) or not _whole(stride):
        raise ValueError("a tensor has a shape that is none")
    if len(size) != len(stride) or len(size) > DIMENSIONS:
        raise ValueError(f"a tensor has a shape of {len(size)} and strides of {len(stride)}")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    overlaps = any(n > 1 and step < 1 for n, step in zip(size, stride, strict=True))
    if not math.prod(size) or math.prod(size) > stored.length or overlaps:
        raise ValueError(
            f"a tensor of shape {_short(size)} does not fit its {stored.length} numbers"
        )
    if offset < 0 or last >= stored.length:
        raise ValueError(f"a tensor of shape {_short(size)} reaches beyond its numbers")
    return TensorSpec(stored, size)


def _whole(values: Any) -> bool:
    return isinstance(values, tuple) and all(
        type(value) is int and 0 <= value < LARGEST for value in values
    )


def _short(size: tuple[int, ...]) -> str:
    return str(size)[:80]


def _global(machine: _Machine, name: Any) -> None:
    machine.stack.append(_Global(name))


def _push(machine: _Machine, value: Any) -> None:
    machine.stack.append(value)


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, _: Any) -> None:
        parts = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(parts[::-1]))

    return step


def _append(machine: _Machine, _: Any) -> None:
    item = machine.pop()
    machine.last(list).append(item)


def _appends(machine: _Machine, _: Any) -> None:
    items = machine.since_mark()
    machine.last(list).extend(items)


def _set_one(machine: _Machine, _: Any) -> None:
    value, key = machine.pop(), machine.pop()
    _set_items(machine, [key, value])


def _keep(machine: _Machine, place: Any) -> None:
    machine.memory[int(place)] = machine.stack[-1]


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "MARK": lambda machine, _: machine.stack.append(_Mark()),
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"), _push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _keep),
    **dict.fromkeys(
        ("BINGET", "LONG_BINGET"), lambda machine, place: _push(machine, machine.memory[place])
    ),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_one,
    "SETITEMS": lambda machine, _: _set_items(machine, machine.since_mark()),
    "GLOBAL": _global,
    "BINPERSID": _stored,
    "REDUCE": _reduced,
}
"""All operations of a pickle that ``torch.save`` uses for tensors in lists and dictionaries."""
