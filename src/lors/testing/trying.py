"""What all checks share: things by name, global generators, bits, and small settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lors.config import load_config
from lors.config.keywords import by_dotted_name
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from lors.system.registry import OWN, Registry
from lors.testing.report import BrokenError

__all__ = [
    "PLACES",
    "bits",
    "named",
    "refused",
    "small_setting",
    "title",
    "with_other_global_seeds",
    "without_global_generators",
]

T = TypeVar("T")

PLACES: Mapping[str, Mapping[str, Any]] = {
    "heads/features": {"scope": "heads", "space": "features", "image_head": "linear"},
    "heads/pixels": {"scope": "heads", "space": "pixels", "image_head": "linear"},
    "image/pixels": {"scope": "image", "space": "pixels"},
}
"""Scopes and spaces in which things are tried, and the encoder in each."""

SMALL: Mapping[str, Any] = {
    "loss": "ence",  # which knows every similarity
    "experts.epochs": 10,  # as many as matchers may want to start from by default
    "similarity.rank": 2,
}


@contextmanager
def named(registry: Registry[Any], thing: Any) -> Iterator[str]:
    """The name of a thing by which settings find it, within the block if it has none.

    Raises:
        InputError: there is no such name.
    """
    if isinstance(thing, str):
        yield registry.check(thing)
        return
    name = registry.give(thing, f"checked-{getattr(thing, '__name__', type(thing).__name__)}")
    try:
        yield name
    finally:
        registry.remove(name)


def title(registry: Registry[Any], name: str) -> str:
    """A thing in words."""
    return f"{registry.what} {name.removeprefix(f'{OWN}checked-')!r}"


def small_setting(
    place: str, matcher: str, changes: Mapping[str, Any], settings: Mapping[str, Any]
) -> Setting:
    """A few drawn scenes in one of ``PLACES``.

    Args:
        place: scope and space.
        matcher: what to match with.
        changes: by dotted name.
        settings: by keyword, as the author gave them.
    """
    encoder = {f"encoder.{key}": value for key, value in PLACES[place].items()}
    every = {**SMALL, **encoder, **changes, "matching.kind": matcher}
    given = by_dotted_name(settings, matcher)
    return setting_of(load_config("tiny", {**every, **given}))


def without_global_generators(work: Callable[[], T]) -> T:
    """Do some work that must not draw from generators that all programs share.

    Raises:
        BrokenError: it has drawn from, or seeded, one of them.
    """

    def watched() -> tuple[T, list[str]]:
        before = _global_states()
        found = work()
        after = _global_states()
        return found, [name for name, state in before.items() if state != after[name]]

    found, moved = with_other_global_seeds(watched)  # which nobody seeds in this way
    if moved:
        raise BrokenError(f"it drew from, or seeded, the global generator of {' and '.join(moved)}")
    return found


def with_other_global_seeds(work: Callable[[], T]) -> T:
    """Do some work with other global generators than now, which are put back afterwards."""
    numpy, python = np.random.get_state(), random.getstate()
    with torch.random.fork_rng():
        torch.manual_seed(123456)
        np.random.seed(123456)
        random.seed(123456)
        try:
            return work()
        finally:
            np.random.set_state(numpy)
            random.setstate(python)


def _global_states() -> dict[str, bytes]:
    numpy: Any = np.random.get_state()
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": repr((numpy[1].tobytes(), *numpy[2:])).encode(),
        "random": repr(random.getstate()).encode(),
    }


def bits(value: Any) -> Any:
    """Numbers as what can be compared bit by bit: also NaN equals itself."""
    if isinstance(value, Tensor):
        return str(value.dtype), tuple(value.shape), bits(value.detach().cpu().numpy())
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return {key: bits(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(inner) for inner in value]
    return repr(value)


def refused(work: Callable[[], Any], what: str) -> None:
    """Do what must be refused in a sentence.

    Raises:
        BrokenError: it is not, or with another error than ``InputError``.
    """
    try:
        work()
    except InputError:
        return
    raise BrokenError(f"{what} is not refused")
