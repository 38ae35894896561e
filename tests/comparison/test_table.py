from __future__ import annotations

from pathlib import Path

import pytest

from lors.comparison.cell import Cell
from lors.comparison.run import _runs
from lors.comparison.table import (
    Table,
    Variant,
    load_table,
    narrowed,
    own_table,
    scales,
    tables,
    transferred,
)
from lors.config import load_config
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


@pytest.mark.parametrize("name", sorted(PAPER))
def test_what_stands_beside_the_papers_numbers_is_in_the_published_reading(name: str) -> None:
    for cell in load_table(name).cells([0]):
        assert cell.config.loss.endswith("-published"), cell.name
        assert cell.config.experts.loss == "nce-published"
        assert cell.config.evaluate.reading == "published"
        assert cell.config.encoder.text_head == "mlp-published"


def test_cells_with_one_configuration_share_a_run() -> None:
    cells = load_table("cross-architecture", "small").cells([0])
    assert sorted(len(run) for run in _runs(cells)) == [3, 3]
    assert len({cell.evaluate for cell in cells}) == 3
    assert len(_runs(load_table("ablation", "small").cells([0]))) == 16  # r = 10 is the preset's


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


def test_overrides_cannot_make_another_method_of_one() -> None:
    """LoRS with blended pairs would be RepBlend, whatever the label says."""
    table = own_table("tiny", ["lors-wbce"], [8])
    for override in ("matching.blend=1", "distill.fixed=[texts]", "distill.averaging=0.9"):
        with pytest.raises(InputError, match=r"it makes 'LoRS \(wBCE\)' what it is"):
            table.cells([0], [override])
    assert table.cells([0], ["distill.momentum=0.9"])[0].config.distill.momentum == 0.9


def options(cell: Cell) -> dict[str, object]:
    return cell.config.matching.model_dump()


def test_an_override_counts_where_there_is_such_an_option() -> None:
    names = ["lors-wbce", "dc", "dm", "covmatch", "hindsight", "random"]
    table = own_table("tiny", names, [8])
    cells = table.cells([0], ["matching.batch_size=3", "matching.steps=2"])
    lors, dc, dm, covmatch, hindsight, chosen = (options(cell) for cell in cells)
    for both in (lors, dc, chosen):  # a selection keeps what the preset has
        assert (both["batch_size"], both["steps"]) == (3, 2)
    for only in (covmatch, hindsight):
        assert "batch_size" not in only
        assert only["steps"] == 2
    assert dm == options(own_table("tiny", ["dm"], [8]).cells([0])[0])
    cells = table.cells([0], ["matching.noise=0.1"])
    assert ["noise" in options(cell) for cell in cells] == [name == "hindsight" for name in names]
    assert options(cells[names.index("hindsight")])["noise"] == 0.1


def test_an_override_that_no_cell_has_is_refused() -> None:
    table = own_table("tiny", ["lors-wbce", "dm"], [8])
    with pytest.raises(InputError, match="option of the matcher hindsight, not of trajectory"):
        table.cells([0], ["matching.noise=0.1"])
    with pytest.raises(InputError, match="did you mean 'batch_size'"):
        table.cells([0], ["matching.batchsize=1"])


def test_an_override_counts_in_rows_without_a_method() -> None:
    rows = (
        Variant(label="as it is", preset="tiny"),
        Variant(label="gradients", preset="tiny", set={"matching.kind": "gradient"}),
        Variant(label="means", preset="tiny", set={"matching.kind": "distribution"}),
    )
    table = Table(title="", rows=rows, columns=(Variant(label="recall"),))
    found = [
        options(cell).get("batch_size") for cell in table.cells([0], ["matching.batch_size=3"])
    ]
    assert found == [3, 3, None]


def test_what_a_size_tunes_counts_where_there_is_such_an_option() -> None:
    cells = load_table("leaderboard-pixels", "small").cells([0])
    sized = {cell.column: cell.config for cell in cells if cell.row == "500 pairs"}
    assert sized["LoRS (wBCE)"].matching.model_dump()["batch_size"] == 50
    assert sized["LoRS (wBCE)"].matching.model_dump()["max_start_epoch"] == 3
    assert "batch_size" not in sized["Hindsight"].matching.model_dump()
    assert sized["MDM"].matching.model_dump()["max_start_epoch"] == 11  # its own comes first


def test_what_is_tuned_for_a_method_counts_in_rows_and_in_columns() -> None:
    rows = {cell.row: cell.config for cell in load_table("ablation", "small").cells([0])}
    assert rows["CLIP similarity"].scorer == "expert"  # not the method's own
    columns = load_table("leaderboard-pixels", "small").cells([0])
    hindsight = [cell.config for cell in columns if cell.column == "Hindsight"]
    assert {config.distill.iterations for config in hindsight} == {60}  # of the method's 600


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
    assert cell.config.loss == recipe.loss
    share = {"share": data.similarity.share}  # which the method leaves alone
    assert cell.config.similarity == recipe.similarity.model_copy(update=share)
    assert cell.config.distill.learning_rates == recipe.distill.learning_rates
    assert cell.config.distill.init == "canonical"


def test_settings_of_hindsight_are_not_taken_for_those_of_others(tmp_path: Path) -> None:
    """Where a preset names its method, another takes its place; settings written out remain."""
    table = own_table("features", ["hindsight", "amd"], [])
    hindsight, amd = table.cells([0], ["data.root=/none"])
    rates = load_config("features-lors").distill.learning_rates
    assert amd.config.distill.learning_rates == rates
    assert hindsight.config.distill.learning_rates != rates
    mine = tmp_path / "mine.yaml"
    mine.write_text(load_config("features", ["data.root=/none"]).yaml())  # as a run saves it
    own_table(str(mine), ["hindsight", "random", "covmatch"], [])  # which bring their own
    with pytest.raises(InputError, match="settings of hindsight matching, which AMD cannot use"):
        own_table(str(mine), ["hindsight", "amd"], [])


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
