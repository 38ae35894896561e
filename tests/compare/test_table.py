from __future__ import annotations

from pathlib import Path

import pytest

from lors.compare.run import _runs
from lors.compare.table import (
    Table,
    Variant,
    load_table,
    narrowed,
    own_table,
    scales,
    tables,
    transferred,
)
from lors.config import load_config, methods
from lors.evaluation.recall import METRICS
from lors.setting.resolve import resolve
from lors.system.errors import InputError

PAPER = {
    "main-flickr30k",
    "main-coco",
    "matching",
    "ablation",
    "cross-architecture",
    "architectures",
    "filtering",
    "time",
}


def test_every_table_of_the_paper_is_there() -> None:
    assert set(tables()) >= PAPER


@pytest.mark.parametrize(
    ("name", "scale"),
    [(name, scale) for name in tables() for scale in scales(name)],
)
def test_every_cell_is_a_configuration_that_could_run(name: str, scale: str) -> None:
    table = load_table(name, scale)
    cells = table.cells([0, 1])
    assert len(cells) == 2 * len(table.rows) * len(table.columns)
    for cell in cells[::2]:
        resolve(cell.config)
    assert {cell.config.seed for cell in cells} == {0, 1}


@pytest.mark.parametrize("name", sorted(PAPER))
def test_the_papers_numbers_stand_in_cells_of_the_table(name: str) -> None:
    table = load_table(name)
    assert table.published
    for row, columns in table.published.items():
        assert row in {variant.label for variant in table.rows}
        for column, numbers in columns.items():
            assert column in {variant.label for variant in table.columns}
            assert len(numbers) in (1, len(METRICS))
    assert not load_table(name, "small").published


def test_the_main_table_has_every_system_of_the_paper_on_one_budget() -> None:
    table = load_table("main-flickr30k")
    labels = {column.label for column in table.columns}
    assert labels >= {"Random", "Herding", "K-center", "Forgetting", "MTT-VL", "LoRS (wBCE)"}
    for cell in table.cells([0]):
        assert cell.config.distill.budget == int(cell.row.split()[0])
        assert cell.config.data.source == "flickr30k"


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
    method = load_config("demo", method="parallax")
    preset = load_config("scenes-parallax-100")
    for section in ("loss", "similarity", "matching", "selection"):
        assert getattr(method, section) == getattr(preset, section)
    assert method.distill.init == preset.distill.init == "k-means"
    mine = tmp_path / "mine.yaml"
    mine.write_text("base: [hindsight, parallax]")  # whose settings are others
    for setting in ("optimizer", "schedule", "one_batch", "momentum"):
        found, usual = (load_config(name).distill for name in (mine, "demo"))
        assert getattr(found, setting) == getattr(usual, setting)


def test_a_learned_similarity_can_be_added_to_any_method() -> None:
    for name in ("covmatch", "mdm", "apm"):
        plain, learned = (methods()[each].settings for each in (name, f"{name}-lors"))
        changed = {key for key, value in learned.items() if plain[key] != value}
        assert changed == {"loss", "similarity.kind"}
        resolve(load_config("flickr8k-heads-100", method=f"{name}-lors"))


def test_cells_with_one_configuration_share_a_run() -> None:
    cells = load_table("cross-architecture", "small").cells([0])
    assert sorted(len(run) for run in _runs(cells)) == [3, 3]
    assert len({cell.evaluate for cell in cells}) == 3
    assert len(_runs(load_table("ablation", "small").cells([0]))) == 16  # r = 10 is the preset's


def test_methods_reset_what_they_depend_on() -> None:
    changed = ["selection.kind=herding", "distill.fixed=[texts]"]
    changed += ["matching.blend=2", "matching.starts=independent", "matching.shortcut=true"]
    changed += ["matching.phases=[{max_start_epoch: 1}]", "distill.averaging=0.5"]
    changed += ["experts.epochs=10"]
    plain = load_config("tiny").matching
    own = {"amd": "starts", "parallax": "starts", "ptm-st": "shortcut", "repblend": "blend"}
    for name, method in methods().items():
        settings = ["encoder={scope: heads, image_head: linear}", *_overrides(method.set)]
        config = load_config("tiny", [*changed, *settings])
        if config.selection.kind is None:
            other = load_config("tiny", [*changed[-1:], "matching.kind=gradient", *settings])
            assert (other.matching.kind != "gradient") == (name != "dc")
            assert (config.distill.fixed == ()) == ("fix" not in name)
            assert (config.distill.averaging == 0) == (name != "ptm-st")
            assert (config.matching.phases == ()) == (name != "ptm-st")
            for option in own.values():
                default = getattr(config.matching, option) == getattr(plain, option)
                assert default == (own.get(name) != option)
        else:
            assert name in ("random", "herding", "k-center", "forgetting") or "score" in name


def test_overrides_cannot_change_what_a_label_says() -> None:
    table = own_table("tiny", ["random", "lors-r5"], [8])
    for override in (
        "distill.budget=4",
        "selection={kind: herding}",
        "seed=3",
        "similarity.rank=2",
    ):
        with pytest.raises(InputError, match="cannot be overridden"):
            table.cells([0], [override])
    tuned = load_table("main-flickr30k", "small").cells([0], ["evaluate.seeds=7"])
    assert {cell.config.evaluate.seeds for cell in tuned} == {7}


def test_a_users_own_comparison() -> None:
    table = own_table("tiny", ["random", "lors-wbce"], [4, 8])
    cells = table.cells([0], ["evaluate.seeds=1"])
    assert [cell.config.distill.budget for cell in cells] == [4, 4, 8, 8]
    assert all(cell.config.evaluate.seeds == 1 for cell in cells)
    assert [own_table("tiny", ["random"], []).rows[0].label] == ["8 pairs"]


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="did you mean 'herding'"):
        own_table("tiny", ["hearding"], [])
    with pytest.raises(InputError, match="unknown table"):
        load_table("main")
    with pytest.raises(InputError, match="--scale small"):
        load_table("time", "medium")
    with pytest.raises(InputError, match="has no full scale: set --scale small"):
        load_table("leaderboard-pixels-128")
    twice = Variant(label="a", preset="tiny")
    again = Variant(label="A", preset="tiny", set={"distill.budget": 4})
    with pytest.raises(InputError, match="same label"):
        Table(title="", rows=(twice, again), columns=(Variant(label="b"),)).cells([0])
    with pytest.raises(InputError, match="preset"):
        Table(title="", rows=(Variant(label="a"),), columns=(Variant(label="b"),)).cells([0])


def test_a_table_can_be_narrowed_to_some_methods_and_sizes() -> None:
    table = narrowed(load_table("leaderboard", "small"), ["hindsight", "random"], [200])
    assert [row.label for row in table.rows] == ["200 pairs"]
    assert [column.label for column in table.columns] == ["Hindsight", "Random"]
    table = narrowed(load_table("cross-architecture", "small"), ["lors-wbce"], [20])
    assert [row.label for row in table.rows] == ["LoRS (wBCE)"]
    assert len(table.columns) == 3
    with pytest.raises(InputError, match="no such methods or budgets"):
        narrowed(table, ["lors-wbce", "random"], [])


def test_a_method_brings_the_settings_of_its_recipe() -> None:
    table = narrowed(load_table("leaderboard", "small"), ["hindsight"], [100])
    (cell,) = table.cells([0])
    recipe, data = load_config("hindsight"), load_config("flickr8k-heads-100")
    assert cell.config.data == data.data
    assert cell.config.matching.kind == "hindsight"
    for section in ("similarity", "loss"):
        assert getattr(cell.config, section) == getattr(recipe, section)
    assert cell.config.distill.learning_rates == recipe.distill.learning_rates
    assert cell.config.distill.init == "canonical"


def test_settings_of_hindsight_are_not_taken_for_those_of_others() -> None:
    own_table("features", ["hindsight", "random"], [])
    own_table("features-lors", ["hindsight", "lors-wbce"], [])
    with pytest.raises(InputError, match="which AMD cannot use"):
        own_table("features", ["hindsight", "amd"], [])


def test_every_set_can_also_be_evaluated_with_another_trunk() -> None:
    table = own_table("tiny", ["random", "lors-wbce"], [4, 8])
    both = transferred(table, "resnet10t")
    assert [row.label for row in both.rows][2:] == [
        "4 pairs, on resnet10t",
        "8 pairs, on resnet10t",
    ]
    cells = both.cells([0])
    assert len(_runs(cells)) == 4  # no set is made twice
    evaluated = [cell for cell in cells if cell.evaluate]
    assert len(evaluated) == 4
    config = load_config("tiny", evaluated[0].evaluate)
    assert (config.encoder.image, config.encoder.image_weights) == ("resnet10t", None)


def test_sets_of_features_have_no_other_trunk() -> None:
    table = narrowed(load_table("leaderboard", "small"), ["random"], [100])
    with pytest.raises(InputError, match="cannot be evaluated with another image trunk"):
        transferred(table, "resnet10t").cells([0])


def test_a_frozen_trunk_needs_weights_where_the_own_one_has_them() -> None:
    table = narrowed(load_table("leaderboard-pixels", "small"), ["random"], [100])
    with pytest.raises(InputError, match="--image-weights hub"):
        transferred(table, "resnet10t").cells([0])
    assert transferred(table, "resnet10t", "hub").cells([0])


def test_a_table_that_has_the_other_trunk_already_keeps_its_row() -> None:
    table = load_table("leaderboard-image", "small")
    labels = [row.label for row in transferred(table, "resnet10t").rows]
    assert labels.count("100 pairs, on resnet10t") == 1
    assert len(labels) == len(table.rows) + 2
    with pytest.raises(InputError, match="no recall"):
        transferred(load_table("time"), "resnet10t")
