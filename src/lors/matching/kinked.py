"""The operations with kinks that networks call: what to note of each, and its branch elsewhere.

Masks are bytes and are multiplied with: on a CPU that is three times as fast as with booleans, and
ten times as fast as ``torch.where``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["KINKS", "Kink"]

Noted = tuple[Tensor, ...]


class Kink(NamedTuple):
    """An operation with kinks.

    Args:
        branch: what to note; takes what the operation takes.
        value: the branch's value elsewhere; takes what was noted, then what the operation takes.
        of_output: whether the branch is told from the output, which it then takes alone.
        in_place: whether the operation writes to its input, whatever its arguments.
    """

    branch: Callable[..., Noted]
    value: Callable[..., Any]
    of_output: bool = False
    in_place: bool = False


def _bytes(mask: Tensor) -> Tensor:
    return mask.view(torch.uint8)


# A line on either side of 0


def _positive(x: Tensor, *args: Any, **kwargs: Any) -> Noted:
    return (_bytes(x > 0),)


def _relu(out: Tensor) -> Noted:
    return (_bytes(out.bool()),)  # what is not 0: five times as fast as to compare


def _relu_value(noted: Noted, x: Tensor, inplace: bool = False) -> Tensor:
    return x * noted[0]


def _leaky_relu_value(
    noted: Noted, x: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    return x * noted[0] + x * (1 - noted[0]) * negative_slope


def _prelu_value(noted: Noted, x: Tensor, weight: Tensor) -> Tensor:
    slopes = weight.view(-1, *[1] * (x.dim() - 2)) if x.dim() > 1 else weight
    return x * noted[0] + x * (1 - noted[0]) * slopes


def _elu_value(
    noted: Noted, x: Tensor, alpha: float = 1.0, inplace: bool = False, scale: float = 1.0
) -> Tensor:
    positive = noted[0]
    below = torch.expm1(x.clamp(max=1.0)) * (1 - positive)  # far above 0 it would overflow
    return scale * (x * positive + alpha * below)


def _selu_value(noted: Noted, x: Tensor, inplace: bool = False) -> Tensor:
    return _elu_value(noted, x, 1.6732632423543772, scale=1.0507009873554805)


def _sign(x: Tensor) -> Noted:
    return (x.sign().to(torch.int8),)


def _abs_value(noted: Noted, x: Tensor) -> Tensor:
    return x * noted[0]


# A line between two bounds


def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Noted:
    """Whether it lies between the bounds, and at or beyond each."""
    below = torch.zeros_like(x, dtype=torch.bool) if min is None else x < min
    above = torch.zeros_like(x, dtype=torch.bool) if max is None else x > max
    return _bytes(~(below | above)), _bytes(below), _bytes(above)


def _clamp_value(noted: Noted, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    inside, below, above = noted
    found = x * inside
    if isinstance(min, Tensor) or min:  # nothing to add for None and 0
        found = found + below.to(x) * min
    if isinstance(max, Tensor) or max:
        found = found + above.to(x) * max
    return found


def _clamp_max(x: Tensor, max: Any) -> Noted:
    return _clamp(x, None, max)


def _clamp_max_value(noted: Noted, x: Tensor, max: Any) -> Tensor:
    return _clamp_value(noted, x, None, max)


def _hardtanh(
    x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Noted:
    below, above = x <= min_val, x >= max_val  # its slope at the bounds is 0
    return _bytes(~(below | above)), _bytes(below), _bytes(above)


def _hardtanh_value(
    noted: Noted, x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    return _clamp_value(noted, x, min_val, max_val)


def _relu6(x: Tensor, inplace: bool = False) -> Noted:
    return _hardtanh(x, 0.0, 6.0)


def _relu6_value(noted: Noted, x: Tensor, inplace: bool = False) -> Tensor:
    return _clamp_value(noted, x, 0.0, 6.0)


def _hard(x: Tensor, inplace: bool = False) -> Noted:
    return _hardtanh(x, -3.0, 3.0)


def _hardsigmoid_value(noted: Noted, x: Tensor, inplace: bool = False) -> Tensor:
    return (x + 3) / 6 * noted[0] + noted[2]


def _hardswish_value(noted: Noted, x: Tensor, inplace: bool = False) -> Tensor:
    return x * _hardsigmoid_value(noted, x)


# Which of several is the largest


def _pooling(with_indices: Callable[..., Any], x: Tensor, *args: Any, **kwargs: Any) -> Noted:
    """Which input each output is."""
    kwargs.pop("return_indices", None)
    return (with_indices(x, *args, **kwargs)[1],)


def _pooling_value(dims: int, noted: Noted, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    (which,) = noted
    return x.flatten(-dims).gather(-1, which.flatten(-dims)).view(which.shape)


def _larger(a: Tensor, b: Tensor) -> Noted:
    return (_bytes(a > b), _bytes(a == b))


def _larger_value(sign: int, noted: Noted, a: Tensor, b: Tensor) -> Tensor:
    """The slope at a tie is a half for each."""
    first = noted[0].to(a) + noted[1].to(a) / 2
    first = first if sign > 0 else 1 - first
    return a * first + b * (1 - first)


def _extreme(sign: int, x: Tensor, dim: Any = (), keepdim: bool = False) -> Noted:
    """Where along the dimensions the largest is, or the smallest."""
    rows = _rows(x, dim)
    return ((rows if sign > 0 else -rows).argmax(-1, keepdim=True),)


def _extreme_value(noted: Noted, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    found = _rows(x, dim).gather(-1, noted[0]).squeeze(-1)
    for place in sorted(_dims(x, dim)) if keepdim else ():
        found = found.unsqueeze(place)
    return found


def _dims(x: Tensor, dim: Any) -> list[int]:
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [d % x.dim() for d in dims] or list(range(x.dim()))


def _rows(x: Tensor, dim: Any) -> Tensor:
    """The dimensions of an extreme as one, the last."""
    dims = sorted(_dims(x, dim))
    others = [d for d in range(x.dim()) if d not in dims]
    return x.permute(*others, *dims).flatten(len(others))


def _max(sign: int, x: Tensor, *args: Any, **kwargs: Any) -> Noted:
    """``torch.max`` and ``torch.min``: of all, of two, or along a dimension."""
    other = args[0] if args else kwargs.get("other")
    if isinstance(other, Tensor):
        return _larger(x, other)
    return _extreme(sign, x, *args, **kwargs)


def _max_value(sign: int, noted: Noted, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    other = args[0] if args else kwargs.get("other")
    if isinstance(other, Tensor):
        return _larger_value(sign, noted, x, other)
    values = _extreme_value(noted, x, *args, **kwargs)
    if not args and not kwargs:
        return values
    kind = torch.return_types.max if sign > 0 else torch.return_types.min
    return kind((values, noted[0].squeeze(-1).view(values.shape)))


# What is flat between jumps


def _constant(out: Tensor) -> Noted:
    return (out.clone(),)  # it may be changed in place


def _constant_value(noted: Noted, *args: Any, **kwargs: Any) -> Tensor:
    return noted[0].clone()


def _table() -> dict[Any, Kink]:
    found: dict[Any, Kink] = {}

    def add(kink: Kink, *names: str) -> None:
        """By name, wherever torch has it, and its version that works in place."""
        for home in (F, torch, torch._C._nn, Tensor):
            for name in names:
                for function, in_place in ((name, False), (f"{name}_", True)):
                    if hasattr(home, function):
                        known = kink._replace(in_place=in_place)
                        found[getattr(home, function)] = known

    add(Kink(_relu, _relu_value, of_output=True), "relu")
    add(Kink(_positive, _leaky_relu_value), "leaky_relu")
    add(Kink(_positive, _prelu_value), "prelu")
    add(Kink(_positive, _elu_value), "elu")
    add(Kink(_positive, _selu_value), "selu")
    add(Kink(_sign, _abs_value), "abs", "absolute", "__abs__")
    add(Kink(_clamp, _clamp_value), "clamp", "clip")
    add(Kink(_clamp, _clamp_value), "clamp_min")
    add(Kink(_clamp_max, _clamp_max_value), "clamp_max")
    add(Kink(_hardtanh, _hardtanh_value), "hardtanh")
    add(Kink(_relu6, _relu6_value), "relu6")
    add(Kink(_hard, _hardswish_value), "hardswish")
    add(Kink(_hard, _hardsigmoid_value), "hardsigmoid")
    for dims in (1, 2, 3):
        for kind in ("max_pool", "adaptive_max_pool"):
            name = f"{kind}{dims}d"
            branch = partial(_pooling, getattr(F, f"{name}_with_indices"))
            add(Kink(branch, partial(_pooling_value, dims)), name)
    for sign, name in ((1, "max"), (-1, "min")):
        add(Kink(partial(_max, sign), partial(_max_value, sign)), name)
        add(Kink(partial(_extreme, sign), _extreme_value), f"a{name}")
        add(Kink(_larger, partial(_larger_value, sign)), f"{name}imum")
    flat = ("gt", "ge", "lt", "le", "eq", "ne", "sign", "floor", "ceil", "round", "argmax")
    operators = tuple(f"__{name}__" for name in ("gt", "ge", "lt", "le", "eq", "ne"))
    add(Kink(_constant, _constant_value, of_output=True), *flat, "argmin", *operators)
    return found


KINKS = _table()
"""By the functions that networks call."""
