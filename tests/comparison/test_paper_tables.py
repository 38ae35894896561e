"""What the files of the tables say once counts in every table."""

from __future__ import annotations

import pytest

from lors.comparison import load_table, scales, tables
from lors.config import load_config

HEADS = ["flickr8k-heads-100", "flickr8k-heads-200", "flickr8k-heads-500"]


def test_a_row_of_many_sizes_stands_for_one_row_each() -> None:
    rows = load_table("time").rows
    assert [row.preset for row in rows] == [
        f"{data}-lors-{pairs}-published"
        for data in ("flickr30k", "coco")
        for pairs in (100, 200, 500)
    ]
    assert [row.label for row in rows[:2]] == ["Flickr30k 100 pairs", "Flickr30k 200 pairs"]


def test_a_size_may_have_defaults_of_its_own() -> None:
    rates = {
        row.set["distill.budget"]: row.defaults["distill.learning_rates.images"]
        for row in load_table("leaderboard-image", "small").rows
        if not row.evaluate
    }
    assert rates == {100: 700, 200: 1000, 500: 1500}


@pytest.mark.parametrize("name", ["main-flickr30k", "main-coco", "time"])
def test_small_tables_have_the_rows_of_the_leaderboard(name: str) -> None:
    table, leaderboard = load_table(name, "small"), load_table("leaderboard", "small")
    assert [row.preset for row in table.rows] == HEADS
    assert table.columns != leaderboard.columns
    assert table.title == tables()[name]["small"]["title"]


def test_what_was_tuned_once_counts_in_every_small_table_on_those_features() -> None:
    for name in ("main-coco", "main-flickr30k", "leaderboard"):
        cells = load_table(name, "small").cells([0])
        rates = {c.config.distill.learning_rates.images for c in cells if c.column == "DC"}
        assert rates == {0.3}
    scorers = {c.row: c.config.scorer for c in load_table("ablation", "small").cells([0])}
    assert scorers["CLIP similarity"] == "expert"  # the method alone would ask a pretrained CLIP
    full = {c.row: c.config.scorer for c in load_table("ablation").cells([0])}
    assert full["CLIP similarity"].startswith("open_clip:")


def test_a_size_may_tune_options_that_not_every_matcher_has() -> None:
    cells = load_table("leaderboard-pixels", "small").cells([0])
    at_500 = {c.column: c.config.matching for c in cells if c.row == "500 pairs"}
    assert at_500["LoRS (wBCE)"].model_dump()["batch_size"] == 50
    assert "batch_size" not in at_500["Hindsight"].model_dump()


def test_every_preset_that_a_table_names_is_there() -> None:
    for name in tables():
        for scale in scales(name):
            table = load_table(name, scale)
            for variant in (*table.rows, *table.columns):
                if variant.preset:
                    load_config(variant.preset)
