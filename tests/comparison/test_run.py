from __future__ import annotations

import csv
import json
import multiprocessing
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import lors.comparison.run as running
from lors.comparison import own_table, transferred
from lors.comparison.run import fill_table
from lors.comparison.table import Table, Variant
from lors.config import load_config
from lors.evaluation.results import Results
from lors.runs.folders import saved_results
from lors.runs.pipeline import run
from lors.system.errors import InputError, LorsError
from lors.system.progress import Silent, T

QUICK = (
    "evaluate.seeds=1",
    "evaluate.epochs=2",
    "distill.iterations=2",
    "distill.evaluate_every=0",
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "out"
    table = own_table("tiny", ["herding", "lors-wbce"], [8])
    fill_table(table, out, range(2), QUICK, jobs=2)
    return out


def test_a_cell_is_what_a_run_of_its_own_gives(done: Path, tmp_path: Path) -> None:
    records = {
        (line["column"], line["seed"]): line
        for line in csv.DictReader((done / "results.csv").open())
    }
    assert len(records) == 4
    alone = run(
        load_config("tiny", [*QUICK, "seed=1", "loss=wbce", "matching.gradient=tesla"]),
        tmp_path / "alone",
        references=False,
    ).distilled
    record = records["LoRS (wBCE)", "1"]
    assert float(record["mean"]) == pytest.approx(alone.mean)
    assert int(record["pairs"]) == 7
    assert float(record["storage"]) == pytest.approx(alone.storage)
    assert float(record["storage"]) <= 8 == float(records["Herding", "1"]["storage"])
    assert float(record["seconds_per_iteration"]) > 0
    assert not records["Herding", "1"]["seconds"]


def test_tables_and_tidy_results_are_written(done: Path) -> None:
    page = (done / "table.md").read_text()
    assert "| 8 pairs |" in page
    assert "Full data: mean recall" in page
    assert "\\begin{tabular}" in (done / "table.tex").read_text()
    results = json.loads((done / "results.json").read_text())
    assert [(r["column"], r["seed"]) for r in results["records"]] == [
        ("Herding", 0),
        ("Herding", 1),
        ("LoRS (wBCE)", 0),
        ("LoRS (wBCE)", 1),
    ]


def test_an_interrupted_comparison_repeats_only_what_is_missing(done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.glob("runs/*/results.json")}
    lost = done / "runs" / "8-pairs-herding-seed-1" / "results.json"
    kept = lost.read_text()
    lost.unlink()
    records = fill_table(
        own_table("tiny", ["herding", "lors-wbce"], [8]), done, range(2), QUICK, 1
    ).records
    assert len(records) == 4
    assert saved_results(lost.parent).rows == Results.model_validate_json(kept).rows
    assert all(path.stat().st_mtime_ns == t for path, t in before.items() if path != lost)


class Interrupted(Silent):
    """Ctrl-C after the first run."""

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        for item in items:
            yield item
            if what == "runs":
                raise KeyboardInterrupt


class Killed(Silent):
    """The system kills the workers of a comparison."""

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        if what == "runs":
            for worker in multiprocessing.active_children():
                worker.kill()
        yield from items


def test_an_interruption_ends_the_workers_and_keeps_what_is_done(tmp_path: Path) -> None:
    table = own_table("tiny", ["random", "herding"], [8])
    with pytest.raises(KeyboardInterrupt):
        fill_table(table, tmp_path, [0], QUICK, 1, Interrupted())
    assert not multiprocessing.active_children()
    assert len(list(csv.DictReader((tmp_path / "results.csv").open()))) == 1


def test_a_worker_that_is_killed_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LorsError, match="a run was killed"):
        fill_table(own_table("tiny", ["random"], [8]), tmp_path, [0], QUICK, 1, Killed())


def test_as_many_runs_at_a_time_as_cores_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    def affordable(available: float, runs: int) -> int:
        memory = SimpleNamespace(available=available)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
        return running._affordable(load_config("tiny", ["device=cpu"]), runs)

    monkeypatch.setattr(running, "_cores", lambda: 4)
    assert affordable(0, 9) == 1
    assert affordable(10**15, 9) == 4
    assert affordable(10**15, 3) == 3


def test_a_run_that_fails_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    wild = {"distill.learning_rates.images": 1e30, "distill.inner_rate": 1e6}
    table = Table(
        title="",
        rows=(Variant(label="tiny", preset="tiny"),),
        columns=(Variant(label="wild", set=wild), Variant(label="tame")),
    )
    failed, fine = fill_table(table, tmp_path, [0], QUICK, jobs=1).records
    assert "non-finite" in failed.failed
    assert fine.mean is not None
    assert not fine.failed
    assert "| tiny | – |" in (tmp_path / "table.md").read_text()


def test_a_changed_setting_is_refused_before_anything_is_overwritten(done: Path) -> None:
    before = (done / "results.csv").read_bytes()
    table = own_table("tiny", ["herding", "lors-wbce"], [8])
    with pytest.raises(InputError, match=r"evaluate\.epochs: 2, not 3"):
        fill_table(table, done, range(2), [*QUICK, "evaluate.epochs=3"], 1)
    assert (done / "results.csv").read_bytes() == before


def test_sets_are_evaluated_with_other_trunks_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"encoder.image": "resnet10t"}
    table = Table(
        title="",
        rows=(Variant(label="LoRS"),),
        columns=(
            Variant(label="same", preset="tiny"),
            Variant(label="other", preset="tiny", evaluate=other),
        ),
    )
    same, moved = fill_table(table, tmp_path, [0], QUICK, jobs=1).records
    assert len(list(tmp_path.glob("runs/*"))) == 1
    assert same.note == moved.note
    kept = next(tmp_path.glob("runs/*/lors-other-seed-0.json"))
    written = kept.stat().st_mtime_ns
    assert fill_table(table, tmp_path, [0], QUICK, jobs=1).records == [same, moved]
    assert kept.stat().st_mtime_ns == written
    fill_table(table, tmp_path, [0], [*QUICK, "distill.iterations=3"], jobs=1)
    assert kept.stat().st_mtime_ns != written  # the set is another one


def test_an_evaluation_with_another_trunk_that_fails_fails_alone(tmp_path: Path) -> None:
    table = transferred(own_table("tiny", ["random"], [8]), "resnet10t")
    _, other = table.cells([0])
    record = running._record(other, tmp_path, Results())
    assert record.row == "8 pairs, on resnet10t"
    assert "FileNotFoundError" in record.failed


def test_a_trunk_that_does_not_exist_is_refused_before_anything_runs(tmp_path: Path) -> None:
    table = transferred(own_table("tiny", ["random"], [8]), "resnet99")
    with pytest.raises(InputError, match="unknown image trunk 'resnet99'"):
        fill_table(table, tmp_path / "out", [0], QUICK, jobs=1)
    assert not (tmp_path / "out" / "runs").exists()


def test_all_runs_of_a_seed_come_before_those_of_the_next() -> None:
    cells = own_table("tiny", ["random", "herding"], [4, 8]).cells([0, 1])
    assert [group[0].seed for group in running._runs(cells)] == [0] * 4 + [1] * 4
