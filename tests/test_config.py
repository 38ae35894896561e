from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lors.config import Config, difference, load_config, presets
from lors.errors import InputError
from lors.resolve import resolve


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_valid_and_says_what_it_does(name: str) -> None:
    config = load_config(name)
    resolve(config)
    assert config.description


def test_a_configuration_survives_its_own_yaml(tmp_path: Path) -> None:
    config = load_config("demo", ["distill.iterations=7", "data.root=/somewhere"])
    path = tmp_path / "config.yaml"
    path.write_text(config.yaml())
    assert load_config(path) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("distill.iterations=0", "'distill.iterations' should be greater than 0"),
        ("distill.learning_rates.images=-1", "should be greater than 0"),
        ("evaluate.seeds=-2", "greater than 0"),
        ("encoder.temperature=.nan", "finite"),
        ("distill.iteration=5", "did you mean 'iterations'"),
        ("distil.iterations=5", "did you mean 'distill'"),
        ("encoder.scope=everything", "'heads', 'image' or 'all'"),
        ("distill.fixed=[pictures]", "'images'"),
        ("iterations", "section.key=value"),
        ("seed=[", "not valid YAML"),
        ("seed.x.y=1", "not a section"),
        ("experts.epochs=1", "experts.epochs"),
        ("loss=nce", "similarity.kind=identity"),
        ("similarity.values=given.npy", "similarity.kind=fixed"),
        ("encoder.space=features", "encoder.scope=heads"),
        ("encoder={space: features, scope: heads}", "data.augment=false"),
        ("distill.fixed=[images,texts,similarity,rates]", "nothing to learn"),
        ("matching={kind: gradient, shortcut: true}", "shortcut needs matching.kind=trajectory"),
        ("matching={kind: gradient, starts: independent}", "needs matching.kind=trajectory"),
        ("matching.phases=[{max_start_epoch: 2, min_start: 1}]", "did you mean 'min_start_epoch'"),
        ("encoder={scope: all, text: 'open_clip:RN50/x'}", "set encoder.text=transformers:NAME"),
    ],
)
def test_a_bad_override_gets_a_sentence(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_config({"seed": 1, "data": {"augment": True}}, [override])


def test_phases_and_averages_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match=r"more phases than similarity\.rank"):
        load_config(
            "tiny",
            ["matching.phases=[{max_start_epoch: 1}, {max_start_epoch: 1}]", "similarity.rank=1"],
        )
    with pytest.raises(InputError, match="more digits"):
        load_config("tiny", ["distill.averaging=0.9", "dtype=bfloat16"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss=wbc", "did you mean 'wbce'"),
        ("similarity.kind=lowrnk", "did you mean 'lowrank'"),
        ("matching.gradient=exakt", "did you mean 'exact'"),
        ("matching.kind=trajectories", "did you mean 'trajectory'"),
        ("encoder.image=nf_resnet_tny", "did you mean 'nf_resnet_tiny'"),
        ("encoder.image_weights=nowhere.safetensors", "not a file"),
        ("encoder.text=lsaa", "did you mean 'lsa'"),
        ("encoder.text_head=linaer", "did you mean 'linear'"),
        ("data.source=scene", "did you mean 'scenes'"),
        ("device=quantum", "device=auto"),
        ("device=meta", "device=auto"),
    ],
)
def test_a_wrong_name_is_refused_before_work_starts(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(load_config("tiny", [override]))


def test_of_several_bases_each_changes_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base: [tiny, hindsight]\ndistill: {iterations: 7}\n")
    config, tiny, hindsight = load_config(path), load_config("tiny"), load_config("hindsight")
    assert config.data == tiny.data
    assert config.similarity == hindsight.similarity
    assert config.matching.kind == "hindsight"
    assert config.matching.batch_size == tiny.matching.batch_size  # which hindsight leaves alone
    assert config.distill.init == "canonical"
    assert (config.distill.budget, config.distill.iterations) == (8, 7)


def test_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'demo'"):
        load_config("dmo")


def test_missing_and_malformed_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        load_config(tmp_path / "none.yaml")
    path = tmp_path / "list.yaml"
    path.write_text("- 1")
    with pytest.raises(InputError, match="mapping"):
        load_config(path)


def test_a_file_may_start_from_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base: demo\nsimilarity: {rank: 3}\n")
    config, base = load_config(path), load_config("demo")
    assert config.similarity.rank == 3
    assert config.similarity.alpha == base.similarity.alpha
    assert config.distill == base.distill


def test_yaml_never_builds_objects(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text("seed: !!python/object/apply:os.getcwd []")
    with pytest.raises(InputError, match="not valid YAML"):
        load_config(path)


@pytest.mark.parametrize(
    "text",
    [
        "seed: !!timestamp x",
        "seed: !!bool x",
        "seed: 2001-99-99",
        "seed: " + "9" * 5000,
        "[" * 5000,
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]",
        "data: {<<: *nothing}",
        "\0",
        "{1: [}",
    ],
)
def test_odd_yaml_gets_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="is not valid YAML"):
        load_config(path)


def test_a_file_that_is_too_large_or_none_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("# " + "x" * 100_000)
    (tmp_path / "folder.yaml").mkdir()
    for name, message in (("large", "at most 100,000 bytes"), ("folder", "no such file")):
        with pytest.raises(InputError, match=message):
            load_config(tmp_path / f"{name}.yaml")


@pytest.mark.parametrize(
    "override", ["evaluate.weight_decay=.inf", "data.holdout=.nan", "data.root=~nobody-at-all/x"]
)
def test_no_number_is_endless_and_no_home_nobodys(override: str) -> None:
    with pytest.raises(InputError, match=override.partition("=")[0]):
        load_config("demo", [override])


def test_difference_names_what_differs() -> None:
    ours = {"a": 1, "b": {"c": 2, "d": 3}}
    assert difference(ours, {"a": 1, "b": {"c": 5, "d": 3}}) == ["b.c: 5, not 2"]


def test_every_setting_of_the_default_is_written_out() -> None:
    assert set(yaml.safe_load(Config().yaml())) == set(Config.model_fields)


def test_characters_that_yaml_takes_for_line_ends_survive() -> None:
    config = load_config({"description": "\x85 é \u2028 \u2029"})
    assert yaml.safe_load(config.yaml())["description"] == config.description
