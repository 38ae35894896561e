from __future__ import annotations

import json
from pathlib import Path

import pytest

from lors.comparison.results import Filled, Record, Reference, lines, write_results
from lors.comparison.table import Table, Variant, load_table, scales, tables
from lors.comparison.verdict import verdict
from lors.evaluation.recall import METRICS, Recall
from lors.evaluation.statistic import Chance, MeanRecall, Statistic

FULL_DATA = MeanRecall(mean=Statistic(mean=43.21, std=0.5))
CHANCE = Chance.of(Recall(1.0, 5.0, 10.0, 1.0, 5.0, 8.0))
REFERENCE = Reference(rows=["a", "b"], columns=["x"], recall=FULL_DATA, chances=CHANCE)


def record(row: str, column: str, seed: int, value: float, seconds: float = 1.0) -> Record:
    recalls = dict.fromkeys((*METRICS, "mean"), value)
    return Record(row, column, seed, seconds_per_iteration=seconds, **recalls)  # type: ignore[arg-type]


def line(out: Path, start: str) -> str:
    return next(x for x in (out / "table.md").read_text().splitlines() if x.startswith(start))


@pytest.mark.parametrize(
    ("name", "scale"), [(name, scale) for name in tables() for scale in scales(name)]
)
def test_every_table_can_be_written_before_and_after_its_runs(
    name: str, scale: str, tmp_path: Path
) -> None:
    table = load_table(name, scale)
    write_results(table, [], [], tmp_path)
    records = [record(r.label, c.label, 0, 1.0) for r in table.rows for c in table.columns]
    write_results(table, records, [], tmp_path)
    assert "–" not in (tmp_path / "table.md").read_text().split("## ")[1]


def test_numbers_are_means_over_seeds_and_the_best_method_is_bold(tmp_path: Path) -> None:
    table = Table(
        title="",
        rows=(Variant(label="a", preset="tiny"), Variant(label="b", preset="tiny")),
        columns=(Variant(label="x"), Variant(label="y")),
        published={"a": {"x": [9.0], "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}},
    )
    records = [record("a", "x", 0, 1.0), record("a", "x", 1, 3.0)]
    records += [record("a", "y", 0, 5.0), record("a", "y", 1, 5.0)]
    records += [record("b", "x", 0, 7.0), Record("b", "y", 0, failed="it broke")]
    write_results(table, records, [REFERENCE], tmp_path)
    assert line(tmp_path, "| a |") == "| a | 2.0 ± 1.4 (paper 9.0) | **5.0 ± 0.0** (paper 3.5) |"
    assert line(tmp_path, "| a, IR@5") == "| a, IR@5 | 2.0 ± 1.4 | **5.0 ± 0.0** (paper 2.0) |"
    assert line(tmp_path, "| b |") == "| b | 7.0 | – |"
    assert line(tmp_path, "| chance |") == "| chance | 5.0 | 5.0 |"
    assert line(tmp_path, "| chance, TR@10") == "| chance, TR@10 | 8.0 | 8.0 |"
    assert "Full data (x): mean recall 43.2 ± 0.5." in (tmp_path / "table.md").read_text()
    kept = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)
    assert kept["records"][-1]["mean"] is None
    full_data = {"mean": {"mean": 43.21, "std": 0.5}}
    kept["full_data"][0].pop("chances")
    assert kept["full_data"] == [{"rows": ["a", "b"], "columns": ["x"], "recall": full_data}]


def test_the_best_is_marked_only_where_deviations_do_not_overlap() -> None:
    table = Table(
        title="",
        rows=(Variant(label="a", preset="tiny"),),
        columns=(Variant(label="x"), Variant(label="y")),
    )
    close = [record("a", "x", s, v) for s, v in enumerate((10.0, 12.0))]
    close += [record("a", "y", s, v) for s, v in enumerate((12.0, 13.0))]
    (line,) = lines(table, close, "mean")
    assert not any(entry.best for entry in line.entries)
    said = verdict(Filled(table, close, [REFERENCE]))
    assert said == (
        "a: y is ahead with a mean recall of 12.5 ± 0.7, 29 % of the full data's 43.2, where "
        "chance is 5.0; deviations overlap."
    )
    far = [record("a", "x", s, v) for s, v in enumerate((1.0, 2.0))] + close[2:]
    (line,) = lines(table, far, "mean")
    assert [entry.best for entry in line.entries] == [False, True]
    (line,) = lines(table, [far[0], far[2]], "mean")  # one seed has no deviation
    assert not any(entry.best for entry in line.entries)


def test_where_columns_are_datasets_methods_compete_within_one(tmp_path: Path) -> None:
    table = Table(
        title="",
        rows=(Variant(label="a"), Variant(label="b")),
        columns=(Variant(label="x", preset="tiny"), Variant(label="y", preset="tiny")),
    )
    numbers = {("a", "x"): 1.0, ("a", "y"): 20.0, ("b", "x"): 2.0, ("b", "y"): 10.0}
    records = [record(*place, seed, number) for place, number in numbers.items() for seed in (0, 1)]
    write_results(table, records, [], tmp_path)
    assert line(tmp_path, "| a |") == "| a | 1.0 ± 0.0 | **20.0 ± 0.0** |"
    assert line(tmp_path, "| b |") == "| b | **2.0 ± 0.0** | 10.0 ± 0.0 |"


def test_of_times_the_lowest_is_best(tmp_path: Path) -> None:
    table = Table(
        title="",
        rows=(Variant(label="a", preset="tiny"),),
        columns=(Variant(label="x"), Variant(label="y")),
        measure="seconds",
    )
    records = [record("a", "x", s, 9, 6.4) for s in (0, 1)]
    records += [record("a", "y", s, 1, 0.2) for s in (0, 1)]
    write_results(table, records, [], tmp_path)
    assert line(tmp_path, "| a |") == "| a | 6.400 ± 0.000 | **0.200 ± 0.000** |"
