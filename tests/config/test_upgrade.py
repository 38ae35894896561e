"""Configurations of earlier versions mean the same as they did then.

``fixtures/one-matching-section`` was written when one section held the options of all matchers, and
``fixtures/format-1`` long before.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from safetensors import safe_open

from lors import DistilledSet
from lors.config import Config, load_config
from lors.config.matchers import PhaseConfig
from lors.config.upgrade import WHOLE, upgraded
from lors.files import artifacts
from lors.runs.folders import CONFIG, SET, check_folder
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.setting import resolve
from lors.system.errors import InputError

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD = FIXTURES / "one-matching-section"
MATCHERS = sorted(path.stem for path in OLD.glob("*.yaml"))


def saved(kind: str) -> dict[str, object]:
    return yaml.safe_load((OLD / f"{kind}.yaml").read_text())["matching"]


@pytest.mark.parametrize("kind", MATCHERS)
def test_every_setting_keeps_its_value(kind: str) -> None:
    then = yaml.safe_load((OLD / f"{kind}.yaml").read_text())
    config = load_config(OLD / f"{kind}.yaml")
    assert set(then["matching"]) == WHOLE[-1]
    now = config.model_dump(mode="json")
    scope = {"scope": "heads"}
    usual = Config(encoder=scope, matching={"kind": kind}).model_dump(mode="json")
    for section, options in now.items():
        then.setdefault(section, usual[section])
        if isinstance(options, dict) and section != "expected":  # what came later has its default
            then[section] = {
                name: then[section].get(name, usual[section][name]) for name in options
            }
    then["matching"].update(
        {
            name: [PhaseConfig(**phase).model_dump() for phase in phases]
            for name, phases in then["matching"].items()
            if name == "phases"
        }
    )
    assert now == then
    assert config.matching.kind == kind


@pytest.mark.parametrize("kind", MATCHERS)
def test_a_run_directory_of_then_is_accepted(kind: str, tmp_path: Path) -> None:
    shutil.copy(OLD / f"{kind}.yaml", tmp_path / CONFIG)
    config = load_config(OLD / f"{kind}.yaml")
    check_folder(tmp_path, resolve(config))
    changed = config.model_copy(update={"seed": 9})
    with pytest.raises(InputError, match="seed: 0, not 9"):
        check_folder(tmp_path, resolve(changed))


def flat(config: Config) -> dict[str, object]:
    """A configuration with the options of all matchers, as it was saved then."""
    values = config.model_dump(mode="json")
    now = {name: value for name, value in values["matching"].items() if name in WHOLE[-1]}
    return {**values, "matching": {**saved("trajectory"), **now}}


def test_a_finished_run_of_then_is_read_and_not_done_again(
    tiny_run: Path, tiny: Config, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    shutil.copytree(tiny_run, out)
    (out / CONFIG).write_text(yaml.safe_dump(flat(Run(tiny_run).config)))
    header, tensors = artifacts.load(out / SET, "distilled set")
    rest = {k: v for k, v in header.items() if k not in ("format", "kind", "checksum")}
    then = {**rest, "config": flat(DistilledSet.load(out / SET).config)}
    artifacts.save(out / SET, "distilled set", then, tensors)
    with safe_open(out / SET, "pt") as file:
        assert json.loads(file.metadata()["lors"])["config"]["matching"].keys() == WHOLE[-1]
    before = (out / SET).read_bytes()
    assert run(tiny, out) == Run(tiny_run).results
    assert (out / SET).read_bytes() == before
    assert Run(out).config == Run(tiny_run).config
    assert DistilledSet.load(out / SET).config == DistilledSet.load(tiny_run / SET).config


def test_a_set_of_the_first_format_has_the_options_it_was_made_with() -> None:
    options = DistilledSet.load(FIXTURES / "format-1" / "distilled.safetensors").config.matching
    assert options.model_dump(include=WHOLE[0]) == {
        "kind": "trajectory",
        "gradient": "exact",
        "ratio": "merged",
        "steps": 3,
        "batch_size": 5,
        "expert_epochs": 1,
        "max_start_epoch": 2,
    }


@pytest.mark.parametrize("version", range(len(WHOLE)))
@pytest.mark.parametrize("kind", MATCHERS)
def test_sections_of_every_version_are_upgraded(kind: str, version: int) -> None:
    old = {name: value for name, value in saved(kind).items() if name in WHOLE[version]}
    new = upgraded({"seed": 3, "matching": old})
    assert new["seed"] == 3
    assert new["matching"]["kind"] == kind
    assert new["matching"].items() <= old.items()
    load_config({**yaml.safe_load((OLD / f"{kind}.yaml").read_text()), **new})


def test_what_a_user_wrote_is_not_upgraded(tmp_path: Path) -> None:
    """An option too many is a mistake, unless all were saved."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("base: tiny\nmatching: {kind: distribution, steps: 3}")
    with pytest.raises(InputError, match=r"'matching\.steps' is an option of"):
        load_config(mine)
    today = load_config("tiny").model_dump(mode="json")
    today["matching"]["noise"] = 0.5
    with pytest.raises(InputError, match=r"'matching\.noise' is an option of"):
        load_config(today)


def test_a_saved_configuration_can_be_a_base(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"base: {OLD / 'hindsight.yaml'}\nmatching: {{noise: 1}}")
    then = load_config(OLD / "hindsight.yaml").matching
    assert load_config(mine).matching == then.model_copy(update={"noise": 1.0})
    mine.write_text(f"base: {OLD / 'hindsight.yaml'}\nmatching: {{kind: gradient}}")
    expected = {"kind": "gradient", "steps": 3, "batch_size": 5, "real_batch_size": None}
    assert load_config(mine).matching.model_dump() == expected
