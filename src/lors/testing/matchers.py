"""The promises of matchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lors.config import MatchingOptions
from lors.config.options import matching_options, options_of
from lors.matching import MATCHERS, Matcher
from lors.system.errors import InputError
from lors.system.seeding import generator
from lors.testing.report import BrokenError, Checks, Report
from lors.testing.trial import Trial, all_bits, check_finite, shared_network, step
from lors.testing.trying import (
    PLACES,
    bits,
    named,
    refused,
    title,
    with_other_global_seeds,
    without_global_generators,
)

__all__ = ["check_matcher"]

KINDS = ("identity", "diagonal", "lowrank", "full", "fixed")


def check_matcher(matcher: type[Matcher] | str, **settings: Any) -> Report:
    """Check that a matcher keeps the promises that the outer loop relies on.

    >>> from lors.matching.analytic import AnalyticMatcher
    >>> print(check_matcher(AnalyticMatcher))  # doctest: +ELLIPSIS
    matcher 'AnalyticMatcher' keeps its promises
    ok      options are checked
    ...

    Args:
        matcher: the class, or the name that it is registered with.
        settings: of the runs it is tried in, by keyword: ``steps=2``, ``loss="wbce"``, …

    Raises:
        BrokenPromiseError: a promise is broken; the message lists all.
        InputError: there is no such matcher or setting.
    """
    with named(MATCHERS, matcher) as kind:
        checks = Checks(title(MATCHERS, kind))
        if not checks.check("options are checked", partial(_options, kind)):
            return checks.report()
        places = _places(options_of(kind))
        trials = {place: Trial(kind, place, settings) for place in places}
        if not checks.check("declares where it works", partial(_declared, places)):
            return checks.report()
        trial = trials[places[0]]
        if not checks.check("is made of a setting and options", partial(_made, trial)):
            return checks.report()
        for name, promise in PROMISES.items():
            checks.check(name, partial(promise, trial))
        for place, each in trials.items():
            checks.check(f"works in {place}", partial(_works_here, each))
        return checks.report()


def _places(options: type[MatchingOptions]) -> list[str]:
    return [
        place
        for place, encoder in PLACES.items()
        if encoder["scope"] in options.scopes and encoder["space"] in options.spaces
    ]


def _options(kind: str) -> None:
    """Defaults, an unknown option, and the way through a file."""
    options = matching_options({"kind": kind})
    refused(
        lambda: matching_options({"kind": kind, "no_such_option": 1}), "an option that it has not"
    )
    again = matching_options(options.model_dump(mode="json"))
    if again.model_dump() != options.model_dump():
        raise BrokenError("its options are others after being saved and read")


def _declared(places: Sequence[str]) -> str:
    if not places:
        raise BrokenError(f"its Options.scopes and spaces allow none of {', '.join(PLACES)}")
    return ", ".join(places)


def _made(trial: Trial) -> None:
    state = getattr(trial.matcher(), "state", None)
    if state != {}:
        raise BrokenError("after __init__, self.state must be {}: that is what a run begins with")


def _finite(trial: Trial) -> str:
    (seen,) = trial.steps(1)
    check_finite(seen)
    if not any(g is not None and bool(g.any()) for g in seen.gradients.values()):
        raise BrokenError("no part of the set gets a gradient")
    return f"loss {seen.loss:.4g}"


def _same_twice(trial: Trial) -> None:
    """Also with other global generators, and on a second object."""
    first = all_bits(trial.steps(2))
    second = all_bits(with_other_global_seeds(lambda: trial.steps(2)))
    if first != second:
        raise BrokenError(
            "two runs differ: draw everything from the generator, with generator=… or "
            "lors.system.seeding.draw_seed(generator)"
        )


def _generators_differ(trial: Trial) -> str | None:
    draw = generator("check", 0, 0)
    before = draw.get_state()
    step(trial.matcher(), trial.pairs(), draw)
    if torch.equal(draw.get_state(), before):
        return "it draws nothing"
    first = all_bits(trial.steps(1))
    if all(all_bits(trial.steps(1, seed=seed)) == first for seed in (1, 2, 3)):
        raise BrokenError("it draws from the generator, but whatever is drawn, nothing differs")
    return None


def _global_generators(trial: Trial) -> None:
    without_global_generators(lambda: trial.steps(2))


def _state_of_tensors(trial: Trial) -> str:
    for seen in trial.steps(3):
        state = seen.state
        if not isinstance(state, dict):
            raise BrokenError(f"state is a {type(state).__name__}, not a dict")
        for name, value in state.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise BrokenError(
                    f"state[{name!r}] is a {type(value).__name__}: only tensors by name are saved"
                )
            if value.requires_grad:
                raise BrokenError(f"state[{name!r}] requires a gradient: detach it")
    return "empty" if not state else ", ".join(state)


def _resumable(trial: Trial) -> None:
    """Interrupted anywhere, it goes on with the same bits, from ``state`` alone."""
    whole = all_bits(trial.steps(3))
    for stop in (1, 2):
        pairs, matcher = trial.pairs(), trial.matcher()
        trial.steps(stop, pairs, matcher)
        other = trial.matcher()
        other.state = {name: tensor.detach().clone() for name, tensor in matcher.state.items()}
        rest = trial.steps(3 - stop, pairs, other, first=stop)
        if all_bits(rest) != whole[stop:]:
            raise BrokenError(
                f"continued after {stop} calls from a copy of state, it goes another way: keep "
                "whatever lasts from call to call in self.state"
            )


def _only_where_asked(trial: Trial) -> None:
    """Each part fixed, and each part alone."""
    parts = [name for name, tensors in trial.pairs().parts().items() if tensors]
    for fixed in [*([part] for part in parts), *([p for p in parts if p != q] for q in parts)]:
        pairs = trial.pairs()
        for part in fixed:
            for tensor in pairs.parts()[part]:
                tensor.requires_grad_(False)
        trial.matcher().backward(pairs, generator("check", 0, 0))
        given = [p for p in fixed if any(t.grad is not None for t in pairs.parts()[p])]
        if given:
            raise BrokenError(f"with distill.fixed={fixed}, {' and '.join(given)} got a gradient")


def _added(trial: Trial) -> None:
    (seen,) = trial.steps(1)
    pairs = trial.pairs()
    for parameter in pairs.parameters():
        parameter.grad = torch.ones_like(parameter)
    trial.matcher().backward(pairs, generator("check", 0, 0))
    for name, parameter in pairs.named_parameters():
        gradient = seen.gradients[name]
        expected = torch.ones_like(parameter) if gradient is None else 1 + gradient
        scale = float(expected.abs().max())
        if parameter.grad is None or not torch.allclose(
            parameter.grad, expected, rtol=1e-3, atol=1e-4 * scale
        ):
            raise BrokenError(
                f"{name} had a gradient before, to which backward must add: iterations average "
                "several trajectories"
            )


def _set_left_alone(trial: Trial) -> None:
    pairs = trial.pairs()
    before = bits(dict(pairs.state_dict()))
    flags = [parameter.requires_grad for parameter in pairs.parameters()]
    trial.matcher().backward(pairs, generator("check", 0, 0))
    if bits(dict(pairs.state_dict())) != before:
        raise BrokenError("backward changed the set: only add to gradients")
    if [parameter.requires_grad for parameter in pairs.parameters()] != flags:
        raise BrokenError("backward changed which parts require gradients")


def _networks_left_alone(trial: Trial) -> None:
    """Those that everybody shares do not change, and nothing is left on those that it drew."""
    trial.networks.clear()
    trial.steps(2)
    weights, flags = shared_network(trial.setting)
    if weights != trial.shared[0]:
        raise BrokenError("it changed the weights of setting.flat.model, which everybody shares")
    if flags != trial.shared[1]:
        raise BrokenError("it changed what of setting.flat.model requires gradients")
    for network in (trial.setting.flat.model, *trial.networks):
        if any(parameter.grad is not None for parameter in network.parameters()):
            for parameter in network.parameters():
                parameter.grad = None
            raise BrokenError(
                "gradients are left on a network's parameters: name the inputs, as "
                "lors.matching.matcher.add_gradients does, or call zero_grad"
            )


def _rates_as_declared(trial: Trial) -> str:
    (seen,) = trial.steps(1)
    learns = seen.gradients["rates"] is not None and bool(seen.gradients["rates"].any())
    declared = trial.setting.config.matching.learns_rates
    if learns != declared:
        does = "gives" if learns else "does not give"
        raise BrokenError(f"it {does} the rates a gradient, but Options.learns_rates={declared}")
    return "learned" if learns else "not learned"


def _few_pairs(trial: Trial) -> None:
    for seen in trial.steps(2, trial.pairs(2)):
        check_finite(seen)


def _every_similarity(trial: Trial) -> None:
    for kind in KINDS:
        _try_similarity(trial, kind)


def _try_similarity(trial: Trial, kind: str) -> None:
    try:
        for seen in trial.steps(2, trial.pairs(similarity=kind)):
            check_finite(seen)
    except Exception as error:  # whatever the matcher raises
        text = str(error) if isinstance(error, BrokenError) else f"{type(error).__name__}: {error}"
        raise BrokenError(f"with similarity {kind}, {text}") from error


def _works_here(trial: Trial) -> None:
    try:
        trial.matcher()
    except InputError as error:
        raise BrokenError(f"it is refused where its Options say that it works: {error}") from error
    for kind in ("identity", "lowrank"):
        _try_similarity(trial, kind)


PROMISES: Mapping[str, Callable[[Trial], str | None]] = {
    "returns a finite loss and finite gradients": _finite,
    "same bits twice": _same_twice,
    "other generators, other numbers": _generators_differ,
    "leaves global generators alone": _global_generators,
    "state is a dict of tensors": _state_of_tensors,
    "continues from its state": _resumable,
    "gradients only where asked": _only_where_asked,
    "adds to gradients": _added,
    "leaves the set alone": _set_left_alone,
    "leaves networks alone": _networks_left_alone,
    "learns rates as declared": _rates_as_declared,
    "works with few pairs": _few_pairs,
    "works with every similarity": _every_similarity,
}
