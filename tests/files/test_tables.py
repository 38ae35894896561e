from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lors.files.tables import read_csv, write_csv

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(CELLS, min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_back_as_it_was(tmp_path: Path, cells: list[str]) -> None:
    write_csv(tmp_path / "a.csv", ["number", "text"], enumerate(cells))
    assert [row["text"] for row in read_csv(tmp_path / "a.csv")] == cells


def written(folder: Path, cell: object) -> str:
    """A cell as a spreadsheet sees it."""
    write_csv(folder / "a.csv", ["text", "end"], [[cell, "."]])
    with (folder / "a.csv").open(newline="") as file:
        return list(csv.reader(file))[1][0]


@pytest.mark.parametrize("cell", ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1"])
def test_no_cell_is_a_formula(tmp_path: Path, cell: str) -> None:
    assert written(tmp_path, cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-1.5", "+2", "-1e-05", -3, -0.5, "a = b", ""])
def test_numbers_and_plain_text_stay_as_they_are(tmp_path: Path, cell: object) -> None:
    assert written(tmp_path, cell) == str(cell)
