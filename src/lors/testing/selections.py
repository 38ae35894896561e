"""The promises of selections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lors.selection import SELECTIONS, Choice, Pool
from lors.setting import Setting
from lors.testing.report import BrokenError, Checks, Report
from lors.testing.trying import (
    bits,
    named,
    refused,
    small_setting,
    title,
    with_other_global_seeds,
    without_global_generators,
)

__all__ = ["check_selection"]

Choose = Callable[[Pool, int], Choice]


def check_selection(selection: Choose | str, **settings: Any) -> Report:
    """Check that a selection chooses as many different pairs as it is asked for.

    >>> print(check_selection("random"))  # doctest: +ELLIPSIS
    selection 'random' keeps its promises
    ok      chooses different pairs, with a score each
    ...

    Args:
        selection: the function, or the name that it is registered with.
        settings: of the runs it is tried in, by keyword.

    Raises:
        BrokenPromiseError: a promise is broken; the message lists all.
        InputError: there is no such selection.
    """
    with named(SELECTIONS, selection) as name:
        function, checks = SELECTIONS.choose(name), Checks(title(SELECTIONS, name))
        setting = small_setting("heads/features", "trajectory", {}, settings)
        for promise, kept in PROMISES.items():
            checks.check(promise, partial(kept, function, setting))
        return checks.report()


def _chosen(function: Choose, setting: Setting) -> None:
    for count in (1, 8):
        _check(function(Pool(setting), count), count, setting)


def _check(choice: Choice, count: int, setting: Setting) -> None:
    pairs, scores = (np.asarray(part) for part in choice)
    if pairs.shape != (count,) or pairs.dtype.kind not in "iu":
        raise BrokenError(
            f"asked for {count} pairs it gave {pairs.dtype} of shape {pairs.shape}, not {count} "
            "indices"
        )
    if len(np.unique(pairs)) != count:
        raise BrokenError(f"of {count} pairs that it chose, some are the same")
    if not (pairs.min() >= 0 and pairs.max() < len(setting.real["train"])):
        raise BrokenError("it chose pairs that are not there")
    if scores.shape != (count,) or not np.isfinite(scores).all():
        raise BrokenError("give one finite score for each pair; zeros if there are none")


def _all(function: Choose, setting: Setting) -> None:
    count = len(setting.real["train"])
    _check(function(Pool(setting), count), count, setting)


def _too_many(function: Choose, setting: Setting) -> None:
    count = len(setting.real["train"]) + 1
    refused(lambda: function(Pool(setting), count), "asking for more pairs than there are")


def _pool_left_alone(function: Choose, setting: Setting) -> None:
    pool = Pool(setting)
    before = bits(pool.captions)
    function(pool, 8)
    if bits(pool.captions) != before:
        raise BrokenError("it changed pool.captions")


def _same_twice(function: Choose, setting: Setting) -> None:
    def chosen() -> Any:
        return bits(list(function(Pool(setting), 8)))

    if chosen() != with_other_global_seeds(chosen):
        raise BrokenError("two calls differ: draw everything from pool.rng")


def _global_generators(function: Choose, setting: Setting) -> None:
    without_global_generators(lambda: function(Pool(setting), 8))


PROMISES: Mapping[str, Callable[[Choose, Setting], str | None]] = {
    "chooses different pairs, with a score each": _chosen,
    "can choose all pairs": _all,
    "refuses more than there are": _too_many,
    "leaves the pool alone": _pool_left_alone,
    "same bits twice": _same_twice,
    "leaves global generators alone": _global_generators,
}
