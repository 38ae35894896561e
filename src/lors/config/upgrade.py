"""Configurations that earlier versions wrote, as this one reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lors.config.options import options_of

__all__ = ["upgraded"]

FIRST = (
    *("kind", "gradient", "ratio", "steps", "batch_size"),
    *("expert_epochs", "min_start_epoch", "max_start_epoch"),
)
LATER = (
    *("derivative", "autocast", "starts", "shortcut", "phases", "blend", "real_batch_size"),
    *("teacher_temperature", "noise", "rho", "weight", "ridge"),
)
"""One section held the options of all matchers; the first versions had only the first of them."""


def upgraded(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of a saved configuration, without the options of matchers that it does not use.

    Only a section that was saved whole is changed: in one that a user wrote, an option of another
    matcher is a mistake, and is refused.

    >>> old = {"matching": dict.fromkeys((*FIRST, *LATER), 1) | {"kind": "distribution"}}
    >>> upgraded(old)
    {'matching': {'kind': 'distribution', 'real_batch_size': 1}}
    """
    matching = values.get("matching") if isinstance(values, dict) else None
    if not isinstance(matching, Mapping) or not matching.keys() >= set(FIRST):
        return values
    kind = matching["kind"]
    if not isinstance(kind, str):
        return values
    others = {*FIRST, *LATER} - options_of(kind).model_fields.keys()
    kept = {name: value for name, value in matching.items() if name not in others}
    return {**values, "matching": kept}
