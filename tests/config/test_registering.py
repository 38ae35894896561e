"""Things of one's own by name, and sentences for what is no such thing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field

from lors.config import DataConfig, MatchingOptions, load_config
from lors.config.methods import find_method, own_methods, remove_method
from lors.config.names import LOSSES, MATCHERS, SOURCES
from lors.config.options import options_of
from lors.config.registering import REGISTRIES, loss, matcher, register
from lors.data.source import Source
from lors.system.errors import InputError


class Fine:
    class Options(MatchingOptions):
        strength: float = Field(1.0, description="how much")

    def __init__(self, setting: Any, options: Any) -> None: ...

    def backward(self, synthetic: Any, generator: Any) -> float:
        return 0.0


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = {kind: registry.own() for kind, registry in REGISTRIES.items()}
    yield
    for kind, registry in REGISTRIES.items():
        for name in set(registry.own()) - set(before[kind]):
            registry.remove(name)
    remove_method("mine")


def test_a_matcher_is_a_method_with_the_settings_that_suit_it() -> None:
    made = matcher(
        "mine", loss="wbce", similarity="lowrank", rank=3, strength=2.0, label="Mine", about="Toy."
    )(Fine)
    assert made is Fine
    method = find_method("mine")
    assert (method.label, method.about) == ("Mine", "Toy.")
    assert own_methods()["mine"] == method
    config = load_config("tiny", method="mine")
    assert (config.loss, config.similarity.kind, config.similarity.rank) == ("wbce", "lowrank", 3)
    assert config.matching.model_dump() == {"kind": "mine", "strength": 2.0}
    assert load_config("tiny", ["loss=ence"], "mine").loss == "ence"


def test_a_matcher_that_says_nothing_has_plain_settings() -> None:
    register("matcher", "mine", Fine)
    config = load_config("tiny", method="mine")
    assert (config.loss, config.similarity.kind) == ("nce", "identity")


def test_options_from_outside_find_their_way_to_worker_processes() -> None:
    register("matcher", "mine", Fine)
    options = options_of("mine")(strength=3.0)  # type: ignore[call-arg]
    again = pickle.loads(pickle.dumps(options))
    assert again == options
    assert type(again) is type(options)


def test_a_wrong_setting_leaves_no_half_registered_matcher() -> None:
    with pytest.raises(InputError, match="unknown option 'strenth'; did you mean 'strength'"):
        matcher("mine", strenth=2)(Fine)
    assert "mine" not in MATCHERS
    with pytest.raises(InputError, match="the method 'lors-wbce' exists in lors"):
        matcher("lors-wbce")(Fine)
    assert "lors-wbce" not in MATCHERS


@pytest.mark.parametrize(
    "kind", ["loss", "losses", "Loss", "text trunk", "text_trunks", "text-trunk", "data source"]
)
def test_kinds_have_the_names_one_would_try(kind: str) -> None:
    with pytest.raises(InputError, match="cannot name a"):
        register(kind, "Not A Name")


def test_a_plain_function_is_a_source() -> None:
    @register("source", "mine")
    def read(config: DataConfig, progress: Any) -> dict[str, Any]:
        return {}

    assert SOURCES["mine"] == Source(read)
    assert SOURCES["mine"].features is False
    given = Source(read, features=True)
    register("source", "mine", given)
    assert SOURCES["mine"] is given


def test_a_loss_is_registered_by_its_shorthand_and_replaced_by_the_next() -> None:
    for _ in range(2):

        @loss("mine")
        def mine(logits: Any, similarity: Any) -> Any: ...

        assert LOSSES["mine"] is mine


class NoBackward:
    def __init__(self, setting: Any, options: Any) -> None: ...


class WrongOptions(Fine):
    Options = dict  # type: ignore[assignment]


class WrongBackward(Fine):
    def backward(self, synthetic: Any) -> float:  # type: ignore[override]
        return 0.0


class WrongInit(Fine):
    def __init__(self) -> None: ...


class Flagless:
    build = restore = state = embed = lambda self: None


@pytest.mark.parametrize(
    ("kind", "thing", "message"),
    [
        ("matcher", NoBackward, "must be a class with the method 'backward'"),
        ("matcher", len, "must be a class with the method 'backward'"),
        ("matcher", WrongInit, r"must take \(setting, options\)"),
        ("matcher", WrongBackward, r"backward of the matcher 'mine' must take \(self, synthetic"),
        ("matcher", WrongOptions, "must be a subclass of lors.config.MatchingOptions"),
        ("loss", 3, "the loss 'mine' must be a function or a class, not int"),
        ("loss", lambda logits: 0, r"must take \(logits, similarity\)"),
        ("similarity", Fine, "must be a class with the method 'forward'"),
        ("start", lambda: 0, r"must take \(material\)"),
        ("selection", lambda pool: 0, r"must take \(pool, count\)"),
        ("head", lambda inputs: 0, r"must take \(inputs, outputs\)"),
        ("text trunk", Fine, "must be a class with the method 'build'"),
        ("text trunk", Flagless, "must say fitted = True or False"),
        ("source", 3, "must be a function or a lors.data.source.Source"),
        ("source", lambda config: 0, r"must take \(config, progress\)"),
        ("tracker", Fine, "must be a class with the method 'metrics'"),
        ("thing", Fine, "unknown kind of thing 'thing'"),
    ],
)
def test_what_is_no_such_thing_is_refused_on_the_spot(kind: str, thing: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        register(kind, "mine", thing)
    assert all("mine" not in registry for registry in REGISTRIES.values())


def test_names_of_the_package_stay_its_own() -> None:
    with pytest.raises(InputError, match="the loss 'nce' exists in lors"):
        register("loss", "nce")
