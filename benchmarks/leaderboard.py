"""The tables of docs/results/leaderboard.md, from the records in docs/results/leaderboard.

    python benchmarks/leaderboard.py                                                 # the tables
    python benchmarks/leaderboard.py --add features runs/compare-leaderboard-small   # new runs too

A record is one run, as ``lors compare`` writes it. Added records replace those of the same method,
size and seed. The tables are written into the page, each below a line that names it.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results" / "leaderboard"
PAGE = FOLDER.with_suffix(".md")
PROTOCOLS = ("features", "pixels", "image")
SIZES = ("100 pairs", "200 pairs", "500 pairs")

Record = dict[str, str]


def main() -> None:
    """Add records, and write the tables into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", nargs=2, metavar=("PROTOCOL", "COMPARISON"))
    arguments = parser.parse_args()
    if arguments.add:
        protocol, comparison = arguments.add
        if protocol not in PROTOCOLS:
            parser.error(f"PROTOCOL is one of {', '.join(PROTOCOLS)}")
        add(FOLDER / f"{protocol}.csv", Path(comparison) / "results.csv")
    page = PAGE.read_text("utf-8")
    for protocol in PROTOCOLS:
        made = table(read(FOLDER / f"{protocol}.csv"))
        page = re.sub(rf"(<!-- {protocol} -->\n)(\|.*\n)*", rf"\g<1>{made}\n", page)
    PAGE.write_text(page, "utf-8")


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


def table(records: list[Record]) -> str:
    """A line per method, the best first, and for each size what it reaches and costs."""
    cells: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        cells.setdefault(record["column"], {}).setdefault(record["row"], []).append(record)
    rows = [*SIZES, *sorted({record["row"] for record in records} - {*SIZES})]
    rows = [row for row in rows if any(row in found for found in cells.values())]
    best = {
        row: max(_mean(found.get(row, []), "mean") or 0 for found in cells.values()) for row in rows
    }
    head = ["method", *rows, "seeds", "storage", "seconds", "peak GB"]
    lines = [head, ["---"] * len(head)]
    for method, found in sorted(cells.items(), key=lambda item: -_rank(item[1], rows)):
        sizes = [found.get(row, []) for row in rows if row in SIZES]
        lines.append(
            [
                method,
                *(_recall(found.get(row, []), best[row]) for row in rows),
                " / ".join(str(len(runs) or "–") for runs in sizes),
                *(_costs(sizes, cost, digits) for cost, digits in (("storage", 0), ("seconds", 0))),
                _costs(sizes, "gigabytes", 1),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _rank(found: dict[str, list[Record]], rows: list[str]) -> float:
    """A method's recall at the smallest size that it has."""
    return next(mean for row in rows if (mean := _mean(found.get(row, []), "mean")) is not None)


def _recall(runs: list[Record], best: float) -> str:
    mean = _mean(runs, "mean")
    if mean is None:
        return "–"
    values = [float(run["mean"]) for run in runs]
    text = f"{mean:.1f} ± {statistics.stdev(values):.1f}" if len(values) > 1 else f"{mean:.1f}"
    return f"**{text}**" if mean == best else text


def _costs(sizes: list[list[Record]], cost: str, digits: int) -> str:
    means = [_mean(runs, cost) for runs in sizes]
    if all(mean is None for mean in means):
        return "–"
    return " / ".join("–" if mean is None else f"{mean:.{digits}f}" for mean in means)


def _mean(runs: list[Record], key: str) -> float | None:
    values = [float(run[key]) for run in runs if run[key]]
    return statistics.fmean(values) if values else None


if __name__ == "__main__":
    main()
