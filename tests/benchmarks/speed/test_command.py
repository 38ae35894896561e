from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from benchmarks.speed import BENCHMARKS, __main__, recall
from benchmarks.speed.ratio import Ratio


def test_every_benchmark_has_a_module_that_measures_it() -> None:
    for name in BENCHMARKS:
        module = importlib.import_module(f"benchmarks.speed.{name.replace('-', '_')}")
        assert callable(module.ratios)


def test_it_prints_a_table_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def ratios(rounds: int) -> list[Ratio]:
        asked.append(rounds)
        return [
            Ratio("one", 0.5, 2.0, 4.0, 3.25, 13.0, 0.04, {"error": 0.125}),
            Ratio("two", 1, 1, 1),
        ]

    monkeypatch.setattr(recall, "ratios", ratios)
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "figures.json"
    __main__.main(["recall", "--rounds", "3", "--json", str(out)])
    assert asked == [3]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].strip() == f"recall: {BENCHMARKS['recall']}"
    row = next(line for line in printed if "one" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["one", "0.5 s", "2 s", "4.00", "0.04 s", "3.25", "13.00", "error 0.125"]
    figures = json.loads(out.read_text("utf-8"))
    assert figures["rounds"] == 3
    assert [line["faster"] for line in figures["recall"]] == [4.0, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["recal"], "unknown benchmark 'recal'"),
        (["recall", "start-up"], "unknown benchmark 'start-up'"),
        (["--rounds", "1"], "--rounds must be at least 2"),
    ],
)
def test_nothing_is_timed_if_an_argument_is_wrong(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.out == ""
