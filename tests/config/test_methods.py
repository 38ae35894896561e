from __future__ import annotations

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from lors.config import Config, Method, find_method, load_config, methods, presets
from lors.config.matchers import HindsightOptions, TrajectoryOptions
from lors.setting.resolve import resolve
from lors.system.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
HEADS = ["encoder.scope=heads", "encoder.image_head=linear", "experts.epochs=10"]


def value(config: Config, name: str) -> Any:
    found: Any = config.model_dump(mode="json")
    for step in name.split("."):
        found = found[step]
    return found


def has(config: Config, settings: dict[str, Any]) -> bool:
    """Whether setting these changes nothing."""
    overrides = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return load_config(config.model_dump(mode="json"), overrides) == config


@pytest.mark.parametrize("name", methods())
def test_every_method_is_a_configuration_that_could_run(name: str) -> None:
    method = find_method(name)
    for preset, changes in (("tiny", HEADS), ("features", ["data.root=/none"])):
        config = load_config(preset, changes, method=name)
        resolve(config)
        assert has(config, {**method.before(), **method.defaults, **method.settings})
        assert (config.selection.kind is not None) == method.selects
    assert method.label


def test_a_method_as_a_base_is_the_method_of_load_config(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    for name in methods():
        for preset in ("flickr8k-heads-100", "features", "flickr8k-heads-ptm-st-100"):
            mine.write_text(f"base: [{preset}, {name}]\n")
            assert load_config(mine) == load_config(preset, method=name), (preset, name)


def test_nothing_of_another_method_is_left(tmp_path: Path) -> None:
    """Of several methods the last one counts, wherever they stand; a preset's own goes as well."""
    mine, yours = tmp_path / "mine.yaml", tmp_path / "yours.yaml"
    plain = {name: load_config("flickr8k-heads-100", method=name) for name in methods()}
    for before, after in permutations(methods(), 2):
        mine.write_text(f"base: [flickr8k-heads-100, {before}, {after}]\n")
        assert load_config(mine) == plain[after], (before, after)
        yours.write_text(f"base: [flickr8k-heads-100, {before}]\n")
        assert load_config(yours, method=after) == plain[after], (before, after)
        mine.write_text(f"base: [{yours}, {after}]\n")
        assert load_config(mine) == plain[after], (before, after)


def test_also_of_settings_that_stand_in_the_configuration_itself() -> None:
    changed = ["selection.kind=herding", "distill.fixed=[texts]", "distill.averaging=0.5"]
    changed += ["matching.blend=2", "matching.starts=independent", "matching.shortcut=true"]
    changed += ["matching.phases=[{max_start_epoch: 1}]", "distill.init=k-means"]
    changed += ["distill.optimizer=adam", "distill.momentum=0.9", "similarity.omega=2"]
    values = load_config("tiny", [*HEADS, *changed]).model_dump(mode="json")
    for name, method in methods().items():
        config = load_config(values, method=name)
        said = {**method.defaults, **method.settings}
        for setting, expected in method.before().items():
            if setting not in said:
                assert value(config, setting) == json.loads(json.dumps(expected)), (name, setting)


def test_a_method_on_features_has_no_trace_of_hindsight() -> None:
    lors, base = load_config("features", method="lors-wbce"), load_config("features-lors")
    hindsight = load_config("features")
    assert hindsight.matching == HindsightOptions()
    assert isinstance(lors.matching, TrajectoryOptions)
    for section in ("experts", "similarity", "distill", "evaluate", "data", "encoder"):
        assert getattr(lors, section) == getattr(base, section)
    traces = [name for name in find_method("hindsight").defaults if not name.startswith("matching")]
    same = {name for name in traces if value(lors, name) == value(hindsight, name)}
    shared = {"loss", "similarity.kind", "distill.evaluate_every", "distill.checkpoint_every"}
    assert same <= shared  # LoRS's too


def test_defaults_may_be_overridden_and_what_makes_a_method_may_not() -> None:
    config = load_config("tiny", ["distill.iterations=7", "matching.kind=gradient"], "hindsight")
    assert config.distill.iterations == 7
    assert config.matching.kind == "hindsight"
    lower = load_config("tiny", ["distill.iterations=7"], "hindsight", {"distill.iterations": 8})
    assert lower.distill.iterations == 7
    given = load_config("tiny", [], "hindsight", {"distill.iterations": 8})
    assert given.distill.iterations == 8


def test_no_preset_has_the_name_of_a_method() -> None:
    """A base is one or the other."""
    assert not presets().keys() & methods().keys()


def test_labels_tell_methods_apart() -> None:
    assert len({method.label for method in methods().values()}) == len(methods())


def test_an_unknown_method_gets_the_nearest_name() -> None:
    for ask in (find_method, lambda name: load_config("tiny", method=name)):
        with pytest.raises(InputError, match="method 'hindsigth'; did you mean 'hindsight'"):
            ask("hindsigth")


def test_ablations_change_what_they_say() -> None:
    known = methods()
    base = known["lors-wbce"].settings
    changed = {
        name: {key: value for key, value in method.settings.items() if base.get(key) != value}
        for name, method in known.items()
    }
    assert changed["lors-r5"] == {"similarity.rank": 5}
    assert changed["lors-diagonal"] == {"similarity.kind": "diagonal"}
    assert changed["lors-fix-both"] == {"distill.fixed": ["images", "texts"]}
    assert changed["tesla-wbce"] == {"similarity.kind": "identity"}
    assert changed["clip-similarity"] == {"similarity.kind": "fixed"}


def test_methods_that_came_after_are_what_their_preset_is() -> None:
    """Each has a preset of its own that differs from the method on LoRS's preset by nothing."""
    for name in ("covmatch", "repblend", "amd", "ptm-st", "mdm", "apm"):
        preset = load_config(f"flickr8k-heads-{name}-100")
        method = load_config("flickr8k-heads-100", method=name)
        loop = {"gradient", "batch_size"}  # as published, or as suits the data
        assert method.matching.model_dump(exclude=loop) == preset.matching.model_dump(exclude=loop)
        assert method.loss == preset.loss
        assert method.similarity.kind == preset.similarity.kind
        assert method.distill.init == preset.distill.init
        assert method.distill.averaging == preset.distill.averaging
        assert method.distill.learning_rates == preset.distill.learning_rates


def test_parallax_is_what_its_preset_is(tmp_path: Path) -> None:
    method, preset = load_config("demo", method="parallax"), load_config("scenes-parallax-100")
    for section in ("loss", "similarity", "matching", "selection"):
        assert getattr(method, section) == getattr(preset, section)
    assert method.distill.init == preset.distill.init == "k-means"
    mine = tmp_path / "mine.yaml"
    mine.write_text("base: [hindsight, parallax]")  # whose settings are others
    found, usual = (load_config(name).distill for name in (mine, "demo"))
    for setting in ("optimizer", "schedule", "one_batch", "momentum"):
        assert getattr(found, setting) == getattr(usual, setting)


def test_a_learned_similarity_can_be_added_to_any_method() -> None:
    for name in ("covmatch", "mdm", "apm"):
        plain, learned = (methods()[each].settings for each in (name, f"{name}-lors"))
        changed = {key for key, value in learned.items() if plain[key] != value}
        assert changed == {"loss", "similarity.kind"}
        resolve(load_config("flickr8k-heads-100", method=f"{name}-lors"))


@pytest.mark.parametrize("method", methods().values(), ids=lambda method: method.name)
def test_a_method_says_what_it_does_and_where_from(method: Method) -> None:
    assert method.about.endswith(".")
    assert len(method.about) <= 110
    assert method.label
    if method.paper.startswith("docs/"):
        assert (ROOT / method.paper).exists()
    else:
        assert re.fullmatch(r"(https://\S+)?", method.paper)


def test_a_base_gives_its_settings_and_its_paper() -> None:
    lors, r5 = methods()["lors-wbce"], methods()["lors-r5"]
    assert r5.settings == {**lors.settings, "similarity.rank": 5}
    assert r5.paper == lors.paper
    assert r5.about != lors.about
