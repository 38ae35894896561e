"""The promises of starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lors.setting import Setting
from lors.starts import STARTS, Material, Start
from lors.system.errors import InputError
from lors.testing.report import BrokenError, Checks, Report
from lors.testing.trying import (
    PLACES,
    bits,
    named,
    small_setting,
    title,
    with_other_global_seeds,
    without_global_generators,
)

__all__ = ["check_start"]

Begin = Callable[[Material], Start]


def check_start(start: Begin | str, **settings: Any) -> Report:
    """Check that a start gives as many pairs as there are to be, in every scope and space.

    >>> print(check_start("real"))  # doctest: +ELLIPSIS
    start 'real' keeps its promises
    ok      fits heads/features
    ...

    A start that cannot be in some scope or space must say so by raising ``InputError``.

    Args:
        start: the function, or the name that it is registered with.
        settings: of the runs it is tried in, by keyword.

    Raises:
        BrokenPromiseError: a promise is broken; the message lists all.
        InputError: there is no such start.
    """
    with named(STARTS, start) as name:
        function, checks = STARTS.choose(name), Checks(title(STARTS, name))
        made: dict[str, Setting] = {}
        for place in PLACES:
            checks.check(f"fits {place}", partial(_fits, name, place, settings, made))
        checks.check("works somewhere", partial(_somewhere, made))
        if made:
            setting = next(iter(made.values()))
            for promise, kept in PROMISES.items():
                checks.check(promise, partial(kept, function, setting))
        return checks.report()


def _fits(
    name: str, place: str, settings: Mapping[str, Any], made: dict[str, Setting]
) -> str | None:
    try:
        setting = small_setting(place, "trajectory", {"distill.init": name}, settings)
        material = Material(setting)
        found = STARTS.choose(name)(material)
    except InputError as refusal:
        return f"refused: {refusal}"
    made[place] = setting
    images, texts = material.tensors(*(part[: material.count] for part in material.drawn))
    if not isinstance(found, Start):
        raise BrokenError(f"it gave a {type(found).__name__}, not a lors.starts.Start")
    for name, ours, theirs in (("images", found.images, images), ("texts", found.texts, texts)):
        if ours.shape != theirs.shape:
            raise BrokenError(
                f"{name} have shape {tuple(ours.shape)}, not {tuple(theirs.shape)}: make "
                "material.count pairs"
            )
        if not ours.is_floating_point() or not ours.isfinite().all():
            raise BrokenError(f"{name} are not finite numbers")
    return None


def _somewhere(made: Mapping[str, Setting]) -> str:
    if not made:
        raise BrokenError(f"it works in none of {', '.join(PLACES)}")
    return ", ".join(made)


def _real_pairs(function: Begin, setting: Setting) -> str:
    found, real = function(Material(setting)), setting.real["train"]
    if found.real is None:
        return "they stand for no real pairs"
    images, captions = (np.asarray(part) for part in found.real)
    if not len(images) == len(captions) == len(found.images):
        raise BrokenError(
            f"real has {len(images)} images and {len(captions)} captions for {len(found.images)} "
            "pairs"
        )
    if not (images.min() >= 0 and images.max() < len(real)):
        raise BrokenError("real has images that are not there")
    if not (np.asarray(real.owner)[captions] == images).all():
        raise BrokenError("real has captions of other images")
    return "they are or stand for real pairs"


def _same_twice(function: Begin, setting: Setting) -> None:
    def begun() -> Any:
        return bits(list(function(Material(setting))))

    if begun() != with_other_global_seeds(begun):
        raise BrokenError("two calls differ: draw everything from material.generator")


def _global_generators(function: Begin, setting: Setting) -> None:
    without_global_generators(lambda: function(Material(setting)))


PROMISES: Mapping[str, Callable[[Begin, Setting], str | None]] = {
    "says which real pairs they are": _real_pairs,
    "same bits twice": _same_twice,
    "leaves global generators alone": _global_generators,
}
