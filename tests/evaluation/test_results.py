from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lors.config import load_config
from lors.evaluation.recall import METRICS, Recall
from lors.evaluation.results import Results, Row, other_readings
from lors.evaluation.statistic import Chance, Recalls, Statistic
from lors.runs.folders import read_results, saved_results
from lors.system.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def recalls(mean: float, std: float = 0.5) -> dict[str, Any]:
    """As files hold them; each recall another number."""
    return {
        name: {"mean": mean + place, "std": std} for place, name in enumerate((*METRICS, "mean"))
    }


def row(mean: float, **readings: Any) -> dict[str, Any]:
    chosen = {"last": recalls(mean - 1), "chosen": recalls(mean), **readings}
    about = {"pairs": 1200, "storage": 1200, "networks": 5, "note": "nce, rate 0.1"}
    return {**about, "recall": chosen}


def content() -> dict[str, Any]:
    """What ``results.json`` holds after a run."""
    return {
        "iterations": 500,
        "seconds_to_distil": 250.5,
        "peak_memory": 123456789,
        "versions": {"lors": "0.1.0", "torch": "2.4"},
        "rows": {"full data": row(40.0), "random pairs": row(10.0), "distilled set": row(36.0)},
    }


def test_rows_and_recalls_are_attributes() -> None:
    results = Results.model_validate(content())
    assert results.distilled == results["distilled set"]
    assert results.distilled.recall == results.distilled.readings.chosen
    assert results.distilled.recall.ir1 == Statistic(mean=36.0, std=0.5)
    assert results.distilled.recall.tr10.mean == 41.0
    assert results.distilled.mean == 42.0
    assert results.full_data.readings.last is not None
    assert results.full_data.readings.last.mean.mean == 45.0
    assert results.random_pairs.mean == 16.0
    assert results.seconds_per_iteration == 0.501


def test_the_set_of_a_selection_is_found_under_the_same_name() -> None:
    results = Results(iterations=3).with_row("selected set", Row.model_validate(row(5.0)))
    assert results.distilled.mean == 11.0
    assert results.seconds_per_iteration is None


def test_a_row_that_was_not_measured_is_named_with_those_that_were() -> None:
    results = Results.model_validate({"rows": {"distilled set": row(1.0)}})
    assert "full data" not in results
    with pytest.raises(KeyError, match=r"no row 'full data' .* there are: 'distilled set'"):
        results.full_data  # noqa: B018


def test_results_do_not_change() -> None:
    before = Results.model_validate(content())
    after = before.with_row("again", before.distilled)
    assert list(after.rows) == [*before.rows, "again"]
    assert before == Results.model_validate(content())
    with pytest.raises(ValidationError, match="frozen"):
        before.peak_memory = 0  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        before.distilled.recall.ir1.mean = 0.0  # type: ignore[misc]


def test_what_is_read_is_written_again_to_the_byte() -> None:
    newer = content()
    newer["machine"] = {"cores": 2}
    newer["rows"]["distilled set"] = row(36.0, legacy=recalls(37.0), averaged=recalls(38.0))
    newer["rows"]["distilled set"]["recall"]["chosen"]["ir20"] = {"mean": 1.0, "std": 0.0}
    newer["rows"]["distilled set"]["recall"]["chosen"]["ir1"]["median"] = 36.1
    for values in (content(), newer):
        text = json.dumps(values, indent=2)
        assert json.dumps(Results.model_validate(values).content(), indent=2) == text


def test_results_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Whatever is missing but a row's own numbers: the first version wrote no peak memory."""
    old = {"iterations": 500, "rows": {"distilled set": row(36.0)}}
    del old["rows"]["distilled set"]["recall"]["last"]  # type: ignore[index]
    (tmp_path / "results.json").write_text(json.dumps(old))
    results = saved_results(tmp_path)
    assert results.distilled.mean == 42.0
    assert (results.seconds_to_distil, results.peak_memory, results.versions) == (None, None, {})
    assert results.distilled.readings.last is None
    assert other_readings(results.rows) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(rows=[]),
        lambda values: values.update(peak_memory=-1),
        lambda values: values.update(seconds_to_distil=float("nan")),
        lambda values: values["rows"]["full data"].pop("note"),
        lambda values: values["rows"]["full data"].update(pairs="8"),
        lambda values: values["rows"]["full data"].update(storage=float("inf")),
        lambda values: values["rows"]["full data"]["recall"].pop("chosen"),
        lambda values: values["rows"]["full data"]["recall"]["chosen"].pop("tr5"),
        lambda values: values["rows"]["full data"]["recall"]["last"]["ir1"].update(mean=None),
    ],
)
def test_damaged_results_are_refused_with_what_to_do(change: Any, tmp_path: Path) -> None:
    values = content()
    change(values)
    (tmp_path / "results.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"results\.json' is damaged: delete it and run again"):
        saved_results(tmp_path)


def test_results_of_a_shorter_run_do_not_count(tmp_path: Path) -> None:
    config = load_config("tiny", ["distill.iterations=500"])
    (tmp_path / "results.json").write_text(json.dumps(content()))
    assert read_results(tmp_path, config).distilled.mean == 42.0
    longer = load_config("tiny", ["distill.iterations=501"])
    fresh = read_results(tmp_path, longer)
    assert (fresh.iterations, fresh.rows) == (501, {})
    assert list(fresh.content()) == list(content())


def test_printed_results_are_a_table_with_a_column_for_each_row() -> None:
    *shown, sentence = str(Results.model_validate(content())).splitlines()
    title, head, pairs, *lines = shown
    assert sentence.startswith(
        "1,200 pairs reach 91 % of what all 1,200 reach: a mean recall of 42.0"
    )
    assert title == "Recall on the test split (%), epoch chosen on val"
    assert head.split("  ")[-1] == "distilled set"
    assert pairs.split() == ["pairs", "1,200", "1,200", "1,200"]
    assert [line.split()[0] for line in lines] == [
        *("IR@1", "IR@5", "IR@10", "TR@1", "TR@5", "TR@10", "mean"),
    ]
    assert lines[-1].split("  ")[-1].strip() == "42.0 ± 0.5"
    assert len({len(line) for line in (head, pairs, *lines)}) == 1
    assert str(Results()) == "nothing has been measured yet"


def test_a_table_ends_with_what_chance_reaches_if_a_row_knows_it() -> None:
    values = content()
    chance = Chance.of(Recall(1.0, 5.0, 10.0, 1.0, 5.0, 8.0))
    values["rows"]["full data"]["chance"] = chance.content()
    results = Results.model_validate(values)
    assert results.content() == values
    head, *_, mean = str(results).splitlines()[1:-1]
    assert head.split()[-1] == "chance"
    assert mean.split()[-1] == "5.0"
    assert "where chance is 5.0." in str(results)
    assert "<td>chance</td><td></td><td>1.0</td>" in results._repr_html_()
    assert "; chance is 5.0" in str(results.full_data)


def test_a_statistic_is_the_mean_and_the_deviation_of_a_sample() -> None:
    assert Statistic.of([1.0, 2.0, 3.0]) == Statistic(mean=2.0, std=1.0)
    assert Statistic.of([7.0]) == Statistic(mean=7.0, std=0.0)
    assert str(Recalls.model_validate(recalls(43.71)).ir1) == "43.7 ± 0.5"


def test_mean_and_deviation_are_put_together_in_one_place() -> None:
    together = re.compile(r"\} (±|\{mark\})( \{|\s*\"$)|\"recall\"\]\[")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("src", "benchmarks", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines())
        if together.search(line)
    ]
    assert [place.partition(":")[0] for place in found] == ["src/lors/evaluation/statistic.py"]
