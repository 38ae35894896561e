from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lors.config import Config, difference, load_config, presets
from lors.setting.resolve import resolve
from lors.system.errors import InputError


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
        ("distill.iterations=-1", "'distill.iterations' should be greater than or equal to 0"),
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
        ("matching={kind: gradient, shortcut: true}", "shortcut.* set matching.kind=trajectory"),
        ("matching={kind: gradient, starts: independent}", "starts.* set matching.kind=trajectory"),
        ("matching.phases=[{max_start_epoch: 2, min_start: 1}]", "did you mean 'min_start_epoch'"),
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
        ("matching.gradient=exakt", "should be 'exact', 'tesla' or 'unrolled'"),
        ("matching.kind=trajectories", "did you mean 'trajectory'"),
        ("encoder.image=nf_resnet_tny", "did you mean 'nf_resnet_tiny'"),
        ("encoder.image_weights=nowhere.safetensors", "not a file"),
        ("encoder.text=lsaa", "did you mean 'lsa'"),
        ("encoder.text_head=linaer", "did you mean 'linear'"),
        ("data.source=scene", "did you mean 'scenes'"),
        ("encoder={scope: all, text: lsa}", "set encoder.text=transformers:NAME"),
        ("encoder={scope: all, text: 'open_clip:RN50/x'}", "set encoder.text=transformers:NAME"),
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
    assert config.matching == hindsight.matching  # with nothing of trajectory matching
    assert config.experts.batch_size == tiny.experts.batch_size  # which hindsight leaves alone
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


def test_an_empty_mapping_clears_what_the_base_has(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "base: features\ndata: {root: here, annotations: {images: a.npy, texts: b.npy}}\n"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(f"base: {tmp_path / 'base.yaml'}\ndata: {{annotations: {{}}}}\nexperts: {{}}\n")
    config = load_config(path)
    assert (config.data.annotations, config.data.root) == ({}, Path("here"))
    assert config.experts == load_config("features").experts  # a whole section is not cleared


@pytest.mark.parametrize("bases", [["demo"] * 200, ["tiny", "demo"] * 60])
def test_endless_lists_of_bases_are_refused(tmp_path: Path, bases: list[str]) -> None:
    (tmp_path / "many.yaml").write_text(f"base: {bases}")
    with pytest.raises(InputError, match="more than 100 bases"):
        load_config(tmp_path / "many.yaml")


def test_bases_of_bases_are_not_read_without_end(tmp_path: Path) -> None:
    for level in range(30):
        base = str(tmp_path / f"{level + 1}.yaml")
        (tmp_path / f"{level}.yaml").write_text(f"base: [{base}, {base}, {base}]")
    (tmp_path / "30.yaml").write_text("seed: 1")
    with pytest.raises(InputError, match="more than 100 bases"):
        load_config(tmp_path / "0.yaml")
    assert load_config(tmp_path / "27.yaml").seed == 1
    (tmp_path / "chain-0.yaml").write_text("seed: 2")
    for link in range(1, 1500):
        base = str(tmp_path / f"chain-{link - 1}.yaml")
        (tmp_path / f"chain-{link}.yaml").write_text(f"base: {base}")
    with pytest.raises(InputError, match="more than 100 bases"):
        load_config(tmp_path / "chain-1499.yaml")


def test_bases_are_not_larger_together_than_one_configuration(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text("# " + "x" * 60_000)
    paths = [str(tmp_path / f"{name}.yaml") for name in "ab"]
    (tmp_path / "both.yaml").write_text(f"base: {paths}")
    with pytest.raises(InputError, match="with its bases more than 100,000 characters"):
        load_config(tmp_path / "both.yaml")
    (tmp_path / "again.yaml").write_text(f"base: {paths[:1] * 50}")
    assert load_config(tmp_path / "again.yaml") == Config()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=" + "9" * 5000, "a number of 5,000 characters is too long"),
        ("seed=0x" + "f" * 5000, "a number of 5,002 characters is too long"),
        ("seed=" + ":".join(["59"] * 9000), "a number of 26,999 characters is too long"),
        ("distill.inner_rate=" + "1" * 5000 + ".5", "a number of 5,002 characters is too long"),
        ("a." * 5000 + "b=1", "names sections that are not there"),
        ("seed=" + "a" * 200_000, "more than 100,000 characters"),
        ("x" * 5000, "is not of the form section.key=value"),
        ("seed=" + "[" * 2000, "nested too deeply"),
        ("seed=99999999999999999999", "less than 9223372036854775808"),
        ("distill.budget=9999999999999", "less than or equal to 1000000000000"),
        ("experts.epochs=1000000", "less than or equal to 100000"),
        ("evaluate.weight_decay=1e300", "less than or equal to 10{30}"),
        ("evaluate.tried_rates=[1e300]", "less than or equal to 10{30}"),
        ("distill.learning_rates.images=1e39", "less than or equal to 10{30}"),
        ("distill.inner_text_rate=1e39", "less than or equal to 10{30}"),
        ("similarity.alpha=-1e300", "greater than or equal to -10{30}"),
        ("encoder.temperature=1e-300", "should be at least 1e-12"),
        ("matching.blend=1e300", "less than or equal to 10{30}"),
    ],
)
def test_values_out_of_all_proportion_get_a_short_sentence(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_config("demo", [override])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".yaml", "x/" * 2500 + "a.yaml"])
def test_names_of_5000_characters_get_a_short_sentence(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown preset|File name too long") as caught:
        load_config(name)
    assert len(str(caught.value)) < 1000


def test_mappings_may_hold_anything() -> None:
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    for values, message in ((nested, "nested too deeply"), ({"seed": 10**5000}, "too many digits")):
        with pytest.raises(InputError, match=message):
            load_config(values)


def test_presets_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = presets()
    monkeypatch.setattr(Path, "read_text", None)
    assert presets() == before
    assert presets() is not presets()  # changing one changes no other
    load_config("demo")
