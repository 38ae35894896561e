from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lors.comparison.results import Record, Reference, write_results
from lors.comparison.table import Table, Variant
from lors.evaluation.recall import METRICS
from lors.evaluation.statistic import MeanRecall, Statistic
from lors.show.report.comparison import comparison_content, is_comparison
from lors.system.errors import InputError
from tests.show.report.reading import blocks_of, section_of

TABLE = Table(
    title="Methods on tiny",
    rows=(Variant(label="8 pairs", preset="tiny"), Variant(label="16 pairs", preset="tiny")),
    columns=(Variant(label="Random"), Variant(label="LoRS"), Variant(label="DC")),
)
REFERENCE = Reference(
    rows=["8 pairs", "16 pairs"],
    columns=["Random", "LoRS", "DC"],
    recall=MeanRecall(mean=Statistic(mean=43.21, std=0.5)),
)


def record(row: str, column: str, seed: int, value: float, seconds: float | None = None) -> Record:
    recalls = dict.fromkeys((*METRICS, "mean"), value)
    return Record(row, column, seed, pairs=8, seconds=seconds, **recalls)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = [
        record("8 pairs", "Random", 0, 10.0),
        record("8 pairs", "Random", 1, 12.0),
        record("8 pairs", "LoRS", 0, 20.0, 60.0),
        record("8 pairs", "LoRS", 1, 22.0, 62.0),
        Record("8 pairs", "DC", 0, failed="the loss <b>diverged</b>"),
    ]
    write_results(TABLE, records, [REFERENCE], tmp_path)
    return tmp_path


@pytest.fixture
def content(folder: Path) -> dict[str, Any]:
    return comparison_content(folder)


def test_the_best_is_marked_in_bars_and_table(content: dict[str, Any]) -> None:
    _, bars, table = section_of(content, "Result")["blocks"]
    group = bars["groups"][0]
    assert [(bar["name"], bar["mean"], bar["accent"]) for bar in group["bars"]] == [
        ("Random", 11.0, False),
        ("LoRS", 21.0, True),
    ]
    assert group["reference"] == 43.21
    assert table["head"] == ["", "8 pairs", "16 pairs"]
    assert [[cell["text"] for cell in row] for row in table["rows"]] == [
        ["Random", "11.0 ± 1.4", "–"],
        ["LoRS", "21.0 ± 1.4", "–"],
        ["DC", "–", "–"],
    ]
    assert [row[1]["strong"] for row in table["rows"]] == [False, True, False]


def test_two_sentences_name_the_winner(content: dict[str, Any]) -> None:
    assert "2 × 3 cells were run with 2 seeds" in content["lead"][0]
    assert content["lead"][1].startswith("LoRS is best in 1 of 2 contests, for 8 pairs with 21.0 ±")


def test_failed_runs_are_named(content: dict[str, Any]) -> None:
    assert content["notes"] == ["No result: 8 pairs, DC, seed 0: the loss <b>diverged</b>"]


def test_all_recalls_of_a_contest_are_in_one_table(content: dict[str, Any]) -> None:
    first, _ = section_of(content, "All recalls")["blocks"]
    assert first["head"] == ["8 pairs", "IR@1", "IR@5", "IR@10", "TR@1", "TR@5", "TR@10"]
    assert [cell["text"] for cell in first["rows"][1]] == ["LoRS", *["21.0 ± 1.4"] * 6]


def test_time_and_every_seed_are_there(content: dict[str, Any]) -> None:
    seconds = section_of(content, "Time")["blocks"][1]["rows"][1]
    assert seconds[1] == {"text": "61 ± 1", "strong": False}
    runs = section_of(content, "Runs")["blocks"][0]
    assert len(runs["rows"]) == 5


def test_methods_in_rows_compete_within_columns(tmp_path: Path) -> None:
    table = Table(
        title="",
        rows=(Variant(label="A"), Variant(label="B")),
        columns=(Variant(label="x", preset="tiny"),),
    )
    records = [record("A", "x", seed, 1.0) for seed in (0, 1)]
    records += [record("B", "x", seed, 2.0) for seed in (0, 1)]
    write_results(table, records, [], tmp_path)
    (bars,) = blocks_of(comparison_content(tmp_path), "bars")
    (group,) = bars["groups"]
    assert group["title"] == "x"
    assert [(bar["name"], bar["accent"]) for bar in group["bars"]] == [("A", False), ("B", True)]


def test_results_from_before_they_held_their_table_are_read(folder: Path) -> None:
    path = folder / "results.json"
    results = json.loads(path.read_text())
    del results["table"]
    path.write_text(json.dumps(results))
    _, bars, _ = section_of(comparison_content(folder), "Result")["blocks"]
    assert [group["title"] for group in bars["groups"]] == ["8 pairs"]


def test_damaged_results_are_named(folder: Path) -> None:
    (folder / "results.json").write_text('{"records": [{}]}')
    with pytest.raises(InputError, match="is damaged"):
        comparison_content(folder)


def test_a_run_is_not_a_comparison(tiny_run: Path, folder: Path) -> None:
    assert is_comparison(folder)
    assert not is_comparison(tiny_run)
