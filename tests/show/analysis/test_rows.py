from __future__ import annotations

from pathlib import Path

import pytest

from lors.show.analysis.rows import read_rows, write_rows
from lors.system.errors import InputError

ROWS = [{"name": 'a "b", $c', "value": 0.12345678}, {"name": "ünï\nline", "value": 2.0}]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_what_is_written_is_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    write_rows(path, ROWS)
    found = read_rows(path, ["name", "value"])
    assert [row["name"] for row in found] == [row["name"] for row in ROWS]
    assert [float(row["value"]) for row in found] == [0.123457, 2.0]


def test_bad_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        read_rows(tmp_path / "absent.csv", ["a"])
    with pytest.raises(InputError, match=r"\.csv or \.json"):
        write_rows(tmp_path / "rows.txt", ROWS)
    for name, text in {"rows.csv": "b\n1\n", "rows.json": "{"}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match="not a table with the columns a"):
            read_rows(tmp_path / name, ["a"])
