from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app, main
from lors.runs.opened import Run
from lors.show.analysis.false_negatives import auc, values
from lors.show.analysis.rows import read_rows

runner = CliRunner()
QUICK = ["distill.budget=8", "distill.iterations=1", "evaluate.seeds=1", "evaluate.epochs=2"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(
    "command", ["variance", "false-negatives", "spectrum", "neighbours", "efficiency"]
)
def test_every_analysis_has_help(command: str) -> None:
    result = runner.invoke(app, ["analyze", command, "--help"])
    assert result.exit_code == 0
    assert "--out" in result.output


def test_variance_writes_its_table_and_the_figure_reads_it() -> None:
    result = runner.invoke(app, ["analyze", "variance", "tiny", "--out", "table.csv"])
    assert "scenes" in result.output
    result = runner.invoke(app, ["figure", "variance", "table.csv"])
    assert "figures/variance.png" in result.output
    assert Path("figures/variance.svg").is_file()


def test_false_negatives_leaves_runs_for_the_histogram() -> None:
    result = runner.invoke(app, ["analyze", "false-negatives", "tiny", *QUICK, "--seeds", "1"])
    assert "auc" in result.output
    out = Path("runs/tiny-false-negatives")
    (row,) = read_rows(out / "auc.csv", ["auc"])
    assert float(row["auc"]) == pytest.approx(auc(values(Run(out / "seed-0"))), rel=1e-4)
    result = runner.invoke(app, ["figure", "histogram", str(out / "seed-0"), "--out", "here"])
    assert result.exit_code == 0
    assert Path("here/histogram.png").is_file()


def test_spectrum_and_neighbours_of_a_run(tiny_run: Path) -> None:
    result = runner.invoke(app, ["analyze", "spectrum", str(tiny_run), "--out", "spectrum.json"])
    assert "effective rank" in result.output
    assert len(read_rows(Path("spectrum.json"), ["place", "residual"])) == 7
    result = runner.invoke(app, ["analyze", "neighbours", str(tiny_run), "-k", "2"])
    assert "before" in result.output


def test_efficiency_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"similarity": kind, "more_seconds": 0.002, "error": 0.001} for kind in ("a", "b")]
    monkeypatch.setattr("lors.show.analysis.efficiency.efficiency", lambda *_: rows)
    result = runner.invoke(app, ["analyze", "efficiency", "tiny"])
    assert "by +2.00 ± 1.00 ms" in result.output


def test_figures_are_listed() -> None:
    assert "sample-pairs" in runner.invoke(app, ["figure", "list"]).output


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "variance", "tiny", "--encoder", "resnet5O"),
        ("analyze", "variance", "tiny", "--labelled", "cifar10"),
        ("analyze", "variance", "tiny", "--labelled", "cifar11"),
        ("analyze", "false-negatives", "tiny", "similarity.kind=identity"),
        ("analyze", "spectrum", "absent"),
        ("analyze", "neighbours", "absent"),
        ("analyze", "efficiency", "tiny", "similarity.kind=identity"),
        ("figure", "spectrum"),
        ("figure", "magic", "absent"),
        ("figure", "variance", "absent.csv"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["lors", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "error: " in capfd.readouterr().err
    assert not list(Path().iterdir())
