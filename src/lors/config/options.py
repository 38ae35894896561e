"""The options of the matcher that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError, create_model

from lors.config.matchers import (
    AnalyticOptions,
    CovarianceOptions,
    DistributionOptions,
    GradientOptions,
    HindsightOptions,
    JointDistributionOptions,
    RelationOptions,
    TrajectoryOptions,
)
from lors.config.matching import MatchingOptions
from lors.config.names import MATCHERS
from lors.config.sentences import sentence
from lors.system.errors import InputError, shortened, suggestion

__all__ = ["DEFAULT_MATCHER", "matching_options", "options_of"]

_BUILT_IN: dict[str, type[MatchingOptions]] = {
    options.model_fields["kind"].default: options
    for options in (
        *(TrajectoryOptions, GradientOptions, DistributionOptions, CovarianceOptions),
        *(JointDistributionOptions, AnalyticOptions, RelationOptions, HindsightOptions),
    )
}

DEFAULT_MATCHER = "trajectory"
"""That of a configuration which names none."""


def options_of(kind: str) -> type[MatchingOptions]:
    """The options of the matcher of that name, known without importing it.

    Raises:
        InputError: there is no such matcher.
    """
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    return _named(getattr(MATCHERS.choose(kind), "Options", MatchingOptions), kind)


@cache
def _named(options: type[MatchingOptions], kind: str) -> type[MatchingOptions]:
    """The options of a matcher from outside, which does not say its name again."""
    return create_model(options.__name__, __base__=options, kind=(str, kind))


def matching_options(values: Any) -> MatchingOptions:
    """The options that a configuration gives, checked.

    Raises:
        InputError: an unknown matcher, an option of another one, or a value out of range.
    """
    if isinstance(values, MatchingOptions):
        return values
    if not isinstance(values, Mapping):
        raise InputError("setting 'matching' should be a section")
    kind = values.get("kind", DEFAULT_MATCHER)
    if not isinstance(kind, str):
        raise InputError(
            f"setting 'matching.kind' should be a name (it is {shortened(repr(kind))})"
        )
    options = options_of(kind)
    for name in values:
        if name not in options.model_fields:
            raise InputError(_unknown(str(name), kind, options))
    try:
        return options.model_validate(values)
    except ValidationError as error:
        raise InputError(sentence(error, options, "matching.")) from None


def _unknown(name: str, kind: str, options: type[MatchingOptions]) -> str:
    owners = [other for other, each in _BUILT_IN.items() if name in each.model_fields]
    where = f"matching.{shortened(name)}"
    if owners:
        return (
            f"{where!r} is an option of the matcher {' and '.join(owners)}, not of {kind}: leave "
            f"it out, or set matching.kind={owners[0]}"
        )
    return f"unknown setting {where!r}{suggestion(name, options.model_fields)}"
