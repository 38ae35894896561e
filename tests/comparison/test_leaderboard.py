"""The leaderboard in the docs is what its records say."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path
from typing import Any

import pytest

from lors.comparison import load_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results" / "leaderboard"
TABLES = {
    "features": "leaderboard",
    "pixels": "leaderboard-pixels",
    "pixels-128": "leaderboard-pixels-128",
    "photos": "leaderboard-photos",
    "image": "leaderboard-image",
}


NEWER = {
    *("AMD", "PTM-ST", "MDM", "APM", "RAHA", "PDS"),
    *("Medoids", "Facility location", "Graph cut", "De-duplication"),
}
"""They were run on all sizes of features, and with one seed on larger sets of pixels."""
ON_SCENES = {"AMD", "PTM-ST", "MDM", "RAHA"}
"""Those that were run on scenes, with one seed of 100 pairs."""
FEWER_SEEDS = {
    ("pixels", size, method): {0} for size in ("200 pairs", "500 pairs") for method in NEWER
}
FEWER_SEEDS |= {
    ("image", size, method): {0} if method in ON_SCENES and size.startswith("100") else set()
    for size in ("100 pairs", "100 pairs, on resnet10t", "200 pairs", "500 pairs")
    for method in NEWER
}


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "leaderboard.py"))


@pytest.mark.parametrize("protocol", TABLES)
def test_the_page_holds_the_tables_of_the_records(protocol: str, script: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "results" / "leaderboard.md").read_text("utf-8")
    records = script["read"](FOLDER / f"{protocol}.csv")
    assert script["table"](records, *script["GALLERIES"][protocol]) in page


def test_no_page_says_anything_but_its_records(script: dict[str, Any]) -> None:
    """Of the leaderboard, the controls and every method."""
    pages = script["pages"]()
    assert {"leaderboard.md", "controls.md", "lors.md"} <= {path.name for path in pages}
    for path, page in pages.items():
        assert path.read_text("utf-8") == page, path


@pytest.mark.parametrize(("protocol", "name"), TABLES.items())
def test_records_are_of_cells_of_the_table_and_within_its_storage(
    protocol: str, name: str, script: dict[str, Any]
) -> None:
    table = load_table(name, "small")
    rows, methods = ({v.label for v in axis} for axis in (table.rows, table.columns))
    records = script["read"](FOLDER / f"{protocol}.csv")
    assert records
    for record in records:
        assert record["row"].partition(", on ")[0] in rows  # the same set with another trunk
        assert record["column"] in methods
        assert float(record["storage"]) <= int(record["row"].split()[0])


@pytest.mark.parametrize("protocol", ["features", "pixels", "image"])
def test_every_cell_has_the_same_five_seeds_unless_named(
    protocol: str, script: dict[str, Any]
) -> None:
    table = load_table(TABLES[protocol], "small")
    seeds: dict[tuple[str, str], set[int]] = {}
    for record in script["read"](FOLDER / f"{protocol}.csv"):
        seeds.setdefault((record["row"], record["column"]), set()).add(int(record["seed"]))
    for row in table.rows:
        for column in table.columns:
            cell = row.label, column.label
            expected = FEWER_SEEDS.get((protocol, *cell), {0, 1, 2, 3, 4})
            assert seeds.get(cell, set()) == expected, cell


def test_added_records_replace_older_ones(tmp_path: Path, script: dict[str, Any]) -> None:
    def write(path: Path, *means: str) -> None:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "column", "seed", "mean", "storage", "seconds", "gigabytes"])
            for seed, mean in enumerate(means):
                writer.writerow(["100 pairs", "LoRS", seed, mean, 99, 10, ""])

    write(tmp_path / "kept.csv", "1", "3")
    write(tmp_path / "new.csv", "2", "", "6")  # the second failed
    script["add"](tmp_path / "kept.csv", tmp_path / "new.csv")
    records = script["read"](tmp_path / "kept.csv")
    assert [record["mean"] for record in records] == ["2", "3", "6"]
    assert "| LoRS | 3.7 ± 2.1 | 3 | 99 | 10 | – |" in script["table"](records, 1000, 5)
