"""The options of matchers: each has its own, and says what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from lors.config import Config, load_config
from lors.config.matchers import (
    CovarianceOptions,
    GradientOptions,
    HindsightOptions,
    TrajectoryOptions,
)
from lors.config.matching import MatchingOptions
from lors.config.options import options_of
from lors.matching import MATCHERS
from lors.system.errors import InputError

JOINT = ["matching.kind=joint-distribution", "matching.min_start_epoch=1"]
HEADS = ["encoder.scope=heads", "encoder.image_head=linear"]


@pytest.mark.parametrize("kind", MATCHERS)
def test_a_matcher_and_its_configuration_agree_on_its_options(kind: str) -> None:
    options = options_of(kind)
    assert getattr(MATCHERS[kind], "Options") is options  # noqa: B009
    assert options().kind == kind
    config = load_config("tiny", [*HEADS, "experts.epochs=10", f"matching.kind={kind}"])
    assert type(config.matching) is options


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("matching.noise=0.1", r"'matching\.noise' is an option of the matcher hindsight, not of "),
        ("matching.ridge=1", r"not of trajectory: leave it out, or set matching\.kind=analytic"),
        ("matching={kind: gradient, shortcut: true}", r"set matching\.kind=trajectory"),
        ("matching={kind: covariance, batch_size: 3}", "trajectory and gradient, not of covaria"),
        ("matching.stepz=3", r"unknown setting 'matching\.stepz'; did you mean 'steps'"),
        ("matching={kind: analytic, rigde: 3}", "did you mean 'ridge'"),
        ("matching.kind=trajectori", "unknown matcher 'trajectori'; did you mean 'trajectory'"),
        ("matching.kind=", "'matching.kind' should be a name"),
        ("matching.kind=[gradient]", "'matching.kind' should be a name"),
        ("matching=gradient", "'matching' should be a section"),
        ("matching.steps=0", r"'matching\.steps' should be greater than 0 \(it is 0\)"),
        ("matching={kind: gradient, steps: 1.5}", r"'matching\.steps'"),
        ("matching.gradient=both", r"'matching\.gradient' .*'exact', 'tesla' or 'unrolled'"),
        ("matching.phases=[{max_start_epoch: 2, min_epoch: 1}]", "did you mean 'min_start_epoch'"),
    ],
)
def test_a_mistake_gets_a_sentence(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_config("tiny", [override])


def test_only_who_matches_trajectories_needs_as_many_epochs_as_it_reads() -> None:
    with pytest.raises(InputError, match="reaches expert epoch 2"):
        load_config("tiny", ["experts.epochs=1"])
    for kind in ("covariance", "gradient", "distribution", "hindsight", "analytic"):
        config = load_config("tiny", [*HEADS, "experts.epochs=1", f"matching.kind={kind}"])
        assert set(config.expert_snapshots()) == {0, 1}
    chosen = load_config("tiny", ["experts.epochs=1", "selection.kind=herding"])
    assert set(chosen.expert_snapshots()) == {0, 1}
    with pytest.raises(InputError, match=r"begins at expert epoch 4 \(min_start_epoch\) but"):
        load_config("tiny", [JOINT[0], "matching.min_start_epoch=4", "matching.max_start_epoch=5"])
    for beyond in (4, 11):
        joint = load_config("tiny", [*JOINT, f"matching.max_start_epoch={beyond}"])
        assert joint.expert_snapshots() == [0, 1, 2, 3]


def test_another_matcher_keeps_the_options_that_it_has_too() -> None:
    changes = ["matching.steps=7", "matching.batch_size=4", "matching.gradient=tesla"]
    trajectory = load_config("tiny", changes).model_dump(mode="json")
    gradient = load_config(trajectory, ["matching.kind=gradient"]).matching
    assert gradient == GradientOptions(steps=7, batch_size=4)
    hindsight = load_config(trajectory, ["matching.kind=hindsight"]).matching
    assert hindsight == HindsightOptions(steps=7)
    first = load_config(trajectory, ["matching.steps=2", "matching.kind=covariance"]).matching
    assert first == CovarianceOptions(steps=2)  # whichever override comes first
    back = load_config(trajectory, ["matching.kind=analytic", "matching.kind=trajectory"])
    assert back.model_dump(mode="json") == trajectory  # only the last one counts


def test_an_option_that_another_matcher_has_not_is_refused_also_beside_its_kind() -> None:
    with pytest.raises(InputError, match="not of gradient"):
        load_config("tiny", ["matching.kind=gradient", "matching.blend=1"])


def test_what_a_matcher_needs_is_checked_only_where_it_is_used() -> None:
    with pytest.raises(InputError, match=r"analytic matching needs encoder\.scope=heads, not imag"):
        load_config("tiny", ["matching.kind=analytic"])
    load_config("tiny", ["matching.kind=analytic", "selection.kind=random"])


def test_rates_are_learned_by_who_trains_on_the_set() -> None:
    learns = {"trajectory", "hindsight"}
    for kind in MATCHERS:
        config = load_config("tiny", [*HEADS, "experts.epochs=10", f"matching.kind={kind}"])
        assert config.learns_rates() == (kind in learns), kind
    assert not load_config("tiny", ["selection.kind=random"]).learns_rates()
    assert {kind for kind in MATCHERS if options_of(kind).divisible} == {"trajectory"}


def test_the_loss_of_a_set_that_teaches_nothing_is_known_of_ratios() -> None:
    assert TrajectoryOptions().idle_loss() == 1
    assert TrajectoryOptions(ratio="separate").idle_loss() == 2
    others = [options_of(kind)(kind=kind) for kind in MATCHERS if kind != "trajectory"]
    assert {options.idle_loss() for options in others} == {None}


class Own:
    """A matcher from outside the package."""

    class Options(MatchingOptions):
        learns_rates: ClassVar[bool] = True
        spaces: ClassVar[tuple[str, ...]] = ("features",)
        strength: float = 0.5


@pytest.fixture
def own() -> Iterator[str]:
    MATCHERS.register("own")(Own)
    yield "matching.kind=own"
    MATCHERS.remove("own")


def test_a_matcher_from_outside_has_options_and_needs_like_others(own: str) -> None:
    features = [*HEADS, "encoder.space=features"]
    config = load_config("tiny", [own, *features, "matching.strength=2"])
    assert config.matching.model_dump() == {"kind": "own", "strength": 2.0}
    assert config.learns_rates()
    assert Config.model_validate(config.model_dump(mode="json")) == config
    with pytest.raises(InputError, match="did you mean 'strength'"):
        load_config("tiny", [own, *features, "matching.strenght=2"])
    with pytest.raises(InputError, match=r"of the matcher trajectory and gradient, .*own"):
        load_config("tiny", [own, *features, "matching.batch_size=2"])
    with pytest.raises(InputError, match=r"own matching needs encoder\.space=features"):
        load_config("tiny", [own])
