"""The tables of docs/results/leaderboard.md, controls.md and docs/methods, from their records.

    python benchmarks/leaderboard.py                                                 # the tables
    python benchmarks/leaderboard.py --add features runs/compare-leaderboard-small   # new runs too
    python benchmarks/leaderboard.py --add controls runs/compare-leaderboard-small   # --controls
    python benchmarks/leaderboard.py --add controls-pixels runs/compare-leaderboard-pixels-small

A record is one run, as ``lors compare`` writes it. Added records replace those of the same method,
size and seed. The tables are written into the pages, each below a line that names it.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
from pathlib import Path

import numpy as np

from lors.comparison.remaining import remaining_lines
from lors.comparison.render import Entry, markdown_table, marked
from lors.comparison.variant import CONTROLS as CONTROL_LABELS
from lors.comparison.variant import under_control
from lors.evaluation.recall import chance
from lors.evaluation.statistic import Recalls

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results" / "leaderboard"
PAGE = FOLDER.with_suffix(".md")
CONTROLS_PAGE = PAGE.with_name("controls.md")
METHODS = FOLDER.parents[1] / "methods"
PROTOCOLS = {
    "features": ("Flickr8k, heads on features", "42.8 ± 0.1"),
    "pixels": ("Flickr8k, heads on photos at 64 px", "14.5 ± 0.4"),
    "pixels-128": ("Flickr8k, heads on photos at 128 px", "31.6 ± 0.3"),
    "photos": ("Flickr8k, photos at 64 px, the last stages train", "19.4 ± 0.3"),
    "image": ("scenes at 32 px, the image trunk trains", "36.7 ± 5.0"),
}
"""What each compares, and what the full data reaches there."""
GALLERIES = dict.fromkeys(PROTOCOLS, (1000, 5)) | {"image": (250, 5)}
"""How many test images there are, and captions of each."""
CONTROLS = ("controls", "controls-pixels")
"""Records of the first two protocols with their controls; a page of its own has their tables.

A JSON file beside each says what the full data reaches in that comparison, alone and taught."""
SIZES = ("100 pairs", "200 pairs", "500 pairs")

COSTS = {"storage": ("storage", 0), "seconds": ("seconds", 0), "peak GB": ("gigabytes", 1)}

Record = dict[str, str]


def main() -> None:
    """Add records, and write the tables into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", nargs=2, metavar=("PROTOCOL", "COMPARISON"))
    arguments = parser.parse_args()
    if arguments.add:
        protocol, comparison = arguments.add
        if protocol not in (known := (*PROTOCOLS, *CONTROLS)):
            parser.error(f"PROTOCOL is one of {', '.join(known)}")
        add(FOLDER / f"{protocol}.csv", Path(comparison) / "results.csv")
        if protocol in CONTROLS:
            found = json.loads((Path(comparison) / "results.json").read_text("utf-8"))
            full = json.dumps(found["full_data"], indent=2)
            (FOLDER / f"{protocol}.json").write_text(f"{full}\n", "utf-8")
    for path, page in pages().items():
        path.write_text(page, "utf-8")


def pages() -> dict[Path, str]:
    """Every page that has tables, with its tables as the records have them."""
    records = {protocol: read(FOLDER / f"{protocol}.csv") for protocol in PROTOCOLS}
    board = PAGE.read_text("utf-8")
    for protocol, found in records.items():
        board = _below(f"<!-- {protocol} -->", table(found, *GALLERIES[protocol]), board)
    controls = CONTROLS_PAGE.read_text("utf-8")
    for name in CONTROLS:
        controls = _controls(name, controls)
    made = {PAGE: board, CONTROLS_PAGE: controls}
    for path in sorted(METHODS.glob("*.md")):
        page = path.read_text("utf-8")
        for label in re.findall(r"<!-- measured: (.*) -->", page):
            page = _below(f"<!-- measured: {label} -->", measured(label, records), page)
        made[path] = page
    return made


def _below(line: str, made: str, page: str) -> str:
    """The page with this table below that line."""
    return re.sub(rf"({re.escape(line)}\n)(\|.*\n)*", lambda found: f"{found[1]}{made}\n", page)


def _controls(name: str, page: str) -> str:
    """The page of controls with the two tables of one protocol, as soon as there are records."""
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        return page
    records, (full,) = read(path), json.loads(path.with_suffix(".json").read_text("utf-8"))
    size, cells = SIZES[0], _cells(records)
    methods = sorted(cells, key=lambda method: -_rank(cells[method], [size]))
    labels = ["as made", *CONTROL_LABELS.values()]
    rows = [size, *(under_control(size, control) for control in CONTROL_LABELS)]
    lines = [["method", *labels, "seeds"]]
    lines += [
        [
            method,
            *(_entry(cells[method].get(row, [])).text() for row in rows),
            " / ".join(str(len(cells[method].get(row, []))) for row in rows),
        ]
        for method in methods
    ]
    means = {
        (row, method): mean
        for method, found in cells.items()
        for row, runs in found.items()
        if (mean := _entry(runs).mean) is not None
    }
    page = _below(f"<!-- recalls: {name} -->", markdown_table(lines), page)
    plain, taught = (Recalls.model_validate(full[name]).mean.mean for name in ("recall", "taught"))
    left = remaining_lines(means, [size], methods, {size: (plain, taught)})
    return _below(f"<!-- remaining: {name} -->", markdown_table(left), page)


def measured(label: str, records: dict[str, list[Record]]) -> str:
    """A line per protocol: what one method reaches at each size, beside random and full data."""
    head = ["mean recall", *SIZES, "random pairs, 100", "full data"]
    lines = [head, ["---"] * len(head)]
    for protocol, (about, full) in PROTOCOLS.items():

        def runs(column: str, row: str, protocol: str = protocol) -> list[Record]:
            return [r for r in records[protocol] if (r["column"], r["row"]) == (column, row)]

        entries = [_entry(runs(label, size)) for size in SIZES]
        if any(entry.mean is not None for entry in entries):
            random = _entry(runs("Random", SIZES[0]))
            lines.append([about, *(entry.text() for entry in (*entries, random)), full])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(path: Path) -> list[Record]:
    """The records of a file that have a result."""
    with path.open(encoding="utf-8", newline="") as file:
        return [record for record in csv.DictReader(file) if record["mean"]]


def add(path: Path, new: Path) -> None:
    """Put the records of a comparison into a file."""
    kept = read(path) if path.is_file() else []
    records = {(r["row"], r["column"], int(r["seed"])): r for r in (*kept, *read(new))}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(next(iter(records.values()))))
        writer.writeheader()
        writer.writerows(record for _, record in sorted(records.items()))


def table(records: list[Record], images: int, captions: int) -> str:
    """A line per method, the best first, and for each size what it reaches and costs; chance last.

    Args:
        records: of one protocol.
        images: of the test split.
        captions: of each of them.
    """
    cells = _cells(records)
    rows = [*SIZES, *sorted({record["row"] for record in records} - {*SIZES})]
    rows = [row for row in rows if any(row in found for found in cells.values())]
    entries = {
        row: dict(zip(cells, marked([_entry(cells[m].get(row, [])) for m in cells]), strict=True))
        for row in rows
    }
    head = ["method", *rows, "seeds", *COSTS]
    lines = [head, ["---"] * len(head)]
    for method, found in sorted(cells.items(), key=lambda item: -_rank(item[1], rows)):
        sizes = [found.get(row, []) for row in rows if row in SIZES]
        lines.append(
            [
                method,
                *(entries[row][method].text("**", "**") for row in rows),
                " / ".join(str(len(runs) or "–") for runs in sizes),
                *(_costs(sizes, *cost) for cost in COSTS.values()),
            ]
        )
    least = Entry(chance(np.repeat(np.arange(images), captions)).mean).text()
    own = [least if row in SIZES else "" for row in rows]
    lines.append(["chance", *own, *[""] * (1 + len(COSTS))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(records: list[Record]) -> dict[str, dict[str, list[Record]]]:
    """Records by method and row."""
    cells: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        cells.setdefault(record["column"], {}).setdefault(record["row"], []).append(record)
    return cells


def _rank(found: dict[str, list[Record]], rows: list[str]) -> float:
    """A method's recall at the smallest size that it has."""
    means = (_entry(found.get(row, [])).mean for row in rows)
    return next(mean for mean in means if mean is not None)


def _costs(sizes: list[list[Record]], cost: str, digits: int) -> str:
    entries = [Entry(_entry(runs, cost).mean, digits=digits) for runs in sizes]
    known = any(entry.mean is not None for entry in entries)
    return " / ".join(entry.text() for entry in entries) if known else "–"


def _entry(runs: list[Record], key: str = "mean") -> Entry:
    values = [float(run[key]) for run in runs if run[key]]
    if not values:
        return Entry()
    return Entry(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


if __name__ == "__main__":
    main()
