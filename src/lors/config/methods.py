"""Methods: named recipes of a matcher with its options, a start, a similarity and a loss.

A method is defined once, in ``methods.yaml`` or by a user, and put into any configuration: by a
preset (``base: [flickr8k-heads-100, amd]``), by ``lors compare --methods amd``, or in Python. The
configuration gives the data, the encoders, the protocol and the hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lors.config.names import LOSSES, MATCHERS, PUBLISHED
from lors.config.options import DEFAULT_MATCHER, options_of
from lors.config.parsing import package_data
from lors.system.errors import InputError, suggestion
from lors.system.registry import FROM_PLUGIN

__all__ = ["Method", "add_method", "find_method", "methods", "own_methods", "remove_method"]

UNLESS_SAID: Mapping[str, Any] = {
    "selection.kind": None,
    "selection.similarity": "identity",
    "distill.averaging": 0.0,
    "distill.fixed": [],
}
"""What a method is as long as it does not say otherwise, whatever the configuration had before."""

USUAL: Mapping[str, Any] = {
    "similarity.omega": 1.0,
    "similarity.values": None,
    "distill.init": "real",
    "distill.one_batch": False,
    "distill.optimizer": "sgd",
    "distill.schedule": "constant",
    "distill.momentum": 0.5,
    "distill.patience": 0,
}
"""What suits a method as long as it does not say otherwise; a user may change it."""


ALIASES = {"lors": "lors-wbce", "tesla": "tesla-wbce"}
"""What the paper calls them."""

PLAIN: Mapping[str, Any] = {"loss": "nce", "similarity.kind": "identity"}
"""What a matcher is tried with that comes without a method."""


@dataclass(frozen=True)
class Method:
    """A method by name.

    >>> find_method("amd").settings["distill.init"]
    'k-means'

    Args:
        name: as in ``lors compare --methods``.
        label: what tables call it.
        settings: by dotted name, those that make it what it is.
        defaults: by dotted name, those that suit it; a user may change them.
        about: what it does, in a sentence.
        paper: where to read about it, a URL or a page of the docs; may be empty.
    """

    name: str
    label: str
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    paper: str = ""

    @property
    def selects(self) -> bool:
        """Whether it chooses real pairs."""
        return self.settings.get("selection.kind") is not None

    @property
    def learns(self) -> bool:
        """Whether it learns pairs, rather than choosing them or making them at once."""
        return not self.selects and self.settings.get("distill.iterations") != 0

    @property
    def matcher(self) -> str:
        """The name of its matcher."""
        return str(self.settings.get("matching.kind", DEFAULT_MATCHER))

    def in_reading_of(self, before: Any) -> Method:
        """The method with the published code's loss, if the loss before it is one of those.

        >>> find_method("lors-ence").in_reading_of("wbce-published").settings["loss"]
        'ence-published'
        """
        if not (isinstance(before, str) and before.endswith(PUBLISHED)):
            return self
        settings, defaults = (_published(each) for each in (self.settings, self.defaults))
        return replace(self, settings=settings, defaults=defaults)

    def before(self) -> dict[str, Any]:
        """What to set before its defaults, so that nothing of another method is left."""
        return {**USUAL, **self._unless_said()}

    def defining(self) -> tuple[str, ...]:
        """The settings, by dotted name, without which it would be another method."""
        return tuple({**self._unless_said(), **self.settings})

    def _unless_said(self) -> dict[str, Any]:
        if "matching.kind" not in self.settings:
            return dict(UNLESS_SAID)
        options = options_of(self.matcher)
        defaults = {name: options.model_fields[name].default for name in options.of_methods}
        return {**UNLESS_SAID, **{f"matching.{name}": value for name, value in defaults.items()}}

    def everything(self) -> dict[str, Any]:
        """All its settings, by dotted name."""
        return {**self.before(), **self.defaults, **self.settings}


def _published(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method, by dotted name, with the published code's loss if there is one."""
    loss = f"{settings.get('loss')}{PUBLISHED}"
    return {**settings, "loss": loss} if loss in LOSSES else dict(settings)


@cache
def methods() -> dict[str, Method]:
    """Every method of the package, by name."""
    found: dict[str, Method] = {}
    for name, text in package_data("lors.config", "methods.yaml").items():
        base = found[text["base"]] if "base" in text else Method("", "", {})
        found[name] = Method(
            name,
            text["label"],
            {**base.settings, **text["set"]},
            {**base.defaults, **text.get("defaults", {})},
            text["about"],
            text.get("paper", base.paper),
        )
    return found


_OWN: dict[str, Method] = {}


def own_methods() -> dict[str, Method]:
    """Every method from outside the package, by name: those that were added, and matchers alone.

    A matcher that was registered without a method has the loss nce and S = I.
    """
    alone = {name: Method(name, name, {"matching.kind": name}, PLAIN) for name in MATCHERS.own()}
    return {**alone, **_OWN}


def add_method(method: Method) -> Method:
    """Make a method of one's own known by its name; the same name again replaces it.

    Raises:
        InputError: the package has a method of that name.
    """
    if method.name in methods() and method != methods()[method.name]:
        raise InputError(f"the method {method.name!r} exists in lors: choose another name")
    _OWN[method.name] = method
    return method


def remove_method(name: str) -> None:
    """Forget a method of one's own."""
    _OWN.pop(name, None)


def find_method(method: str | Method) -> Method:
    """The method of that name, or the method itself.

    A matcher of one's own is also a method: with the loss nce and S = I, unless it says otherwise.

    Raises:
        InputError: there is no such method.
    """
    if isinstance(method, Method):
        return method
    known = {**own_methods(), **methods()}
    method = ALIASES.get(method, method)
    if method in known:
        return known[method]
    raise InputError(
        f"unknown method {method!r}{suggestion(method, [*known, *ALIASES])}{FROM_PLUGIN}"
    )
