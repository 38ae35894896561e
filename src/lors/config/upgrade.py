"""Configurations that earlier versions wrote, as this one reads them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from lors.config.options import options_of

__all__ = ["upgraded"]

ADDED = (
    ["kind", "gradient", "ratio", "steps", "batch_size", "expert_epochs", "max_start_epoch"],
    ["derivative", "autocast"],
    ["min_start_epoch", "starts", "shortcut", "phases", "blend"],
    ["real_batch_size", "rho", "weight", "ridge"],
    ["teacher_temperature", "noise"],
)
"""One section held the options of all matchers: those that it began with, and what each version
added."""

WHOLE = [set(names) for names in accumulate(ADDED)]
"""The options that each of these versions saved."""


def upgraded(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of a saved configuration, without the options of matchers that it does not use.

    Only a section that was saved whole is changed: in one that a user wrote, an option of another
    matcher is a mistake, and is refused.

    >>> old = {"matching": dict.fromkeys(WHOLE[-1], 1) | {"kind": "distribution"}}
    >>> upgraded(old)["matching"] == {"kind": "distribution", "real_batch_size": 1}
    True
    """
    matching = values.get("matching") if isinstance(values, dict) else None
    if not isinstance(matching, Mapping) or matching.keys() not in WHOLE:
        return values
    kind = matching["kind"]
    if not isinstance(kind, str):
        return values
    own = options_of(kind).model_fields
    kept = {name: value for name, value in matching.items() if name in own}
    return {**values, "matching": kept}
