"""The report of a comparison: which method won, by how much, at what cost."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, field_validator

from lors.comparison.cell import cell_name
from lors.comparison.render import Entry, Line
from lors.comparison.results import Record, Reference, lines
from lors.comparison.table import Table, Variant
from lors.evaluation.recall import METRICS, metric_label
from lors.show.report import blocks
from lors.show.report.blocks import Block
from lors.show.report.reached import groups_of
from lors.show.report.tradeoffs import budget_section, cost_section
from lors.system.errors import InputError

__all__ = ["comparison_content", "is_comparison"]


def is_comparison(path: Path) -> bool:
    """Whether a folder was written by ``lors compare``."""
    return (path / "table.md").is_file() and (path / "results.json").is_file()


def comparison_content(folder: Path) -> dict[str, Any]:
    """Everything a page shows of a comparison.

    Raises:
        InputError: its results are damaged.
    """
    path = folder / "results.json"
    try:
        results = _Results.model_validate_json(path.read_bytes(), strict=True)
    except (ValueError, RecursionError):
        raise InputError(f"{str(path)!r} is damaged: compare again") from None
    records, table = results.records, _table(results)
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    groups = []
    if table.measure == "recall":
        groups = groups_of(table, records, results.full_data, folder)
    sections = [
        _result_section(table, records, results.full_data),
        budget_section(groups),
        cost_section(groups),
        _every_recall_section(table, records),
        _time_section(table, records),
        _runs_section(records, folder, versions),
    ]
    return {
        "title": table.title,
        "lead": _lead(table, records),
        "notes": _failures(records),
        "tiles": blocks.tiles(),
        "sections": [section for section in sections if section],
        "pairs": None,
    }


class _Results(BaseModel):
    """What is read of the results of a comparison."""

    title: str
    table: Table | None = None
    records: list[Record]
    full_data: list[Reference]
    versions: dict[str, str]

    @field_validator("records")
    @classmethod
    def _finite(cls, records: list[Record]) -> list[Record]:
        for value in (value for record in records for value in asdict(record).values()):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError("must be finite numbers")
        return records


def _table(results: _Results) -> Table:
    """The table that was filled; of results that do not hold it, as its labels tell it."""
    if results.table is not None:
        return results.table
    rows, columns = (
        tuple(Variant(label=label) for label in dict.fromkeys(labels))
        for labels in ([r.row for r in results.records], [r.column for r in results.records])
    )
    return Table(title=results.title, rows=rows, columns=columns)


def _measure(table: Table) -> str:
    return "seconds_per_iteration" if table.measure == "seconds" else "mean"


def _lead(table: Table, records: Sequence[Record]) -> list[str]:
    """What was run, and who won."""
    seeds = len({record.seed for record in records})
    what = (
        f"{len(table.rows)} × {len(table.columns)} cells were run "
        f"with {seeds} seed{'s' if seeds > 1 else ''} each, {len(records)} results in all."
    )
    contests = _contests(table, lines(table, records, _measure(table)))
    wins = [name for contest in contests for name, entry in contest["entries"] if entry.best]
    if not wins:
        return [what]
    winner = max(dict.fromkeys(wins), key=wins.count)
    return [what, _victory(table, winner, wins.count(winner), contests)]


def _victory(table: Table, winner: str, wins: int, contests: Sequence[dict[str, Any]]) -> str:
    """How often the winner wins, and its first victory with the numbers."""
    first = next(c for c in contests if dict(c["entries"])[winner].best)
    entries = {name: e for name, e in first["entries"] if e.mean is not None}
    fast = table.measure == "seconds"
    ranking = sorted(entries, key=lambda name: entries[name].mean, reverse=not fast)
    ours, next_best = (entries[name].text() for name in ranking[:2])
    return (
        f"{winner} is {'fastest' if fast else 'best'} in {wins} of {len(contests)} contests, "
        f"for {first['title']} with {ours} against {next_best} of {ranking[1]}."
    )


def _contests(table: Table, mean: Sequence[Line]) -> list[dict[str, Any]]:
    """Who competes with whom: the entries of each row, or of each column, by the other's label."""
    columns = [column.label for column in table.columns]
    rows = [row.label for row in table.rows]
    grid = [list(line.entries) for line in mean]
    if table.best_in == "column":
        rows, columns, grid = columns, rows, [list(entries) for entries in zip(*grid, strict=True)]
    return [
        {"title": row, "entries": list(zip(columns, entries, strict=True))}
        for row, entries in zip(rows, grid, strict=True)
    ]


def _result_section(
    table: Table, records: Sequence[Record], references: Sequence[Reference]
) -> Block:
    mean = lines(table, records, _measure(table))
    what = "Seconds per iteration" if table.measure == "seconds" else "Mean recall on test (%)"
    groups = [
        blocks.group(
            contest["title"],
            [
                blocks.bar(name, e.mean, e.deviation, e.text(), e.best)
                for name, e in contest["entries"]
                if e.mean is not None
            ],
            _full_data(table, references, contest["title"]),
        )
        for contest in _contests(table, mean)
    ]
    return blocks.section(
        "Result",
        blocks.text(f"{what}, ± deviation over seeds; the best of each contest is marked."),
        blocks.bars(*groups),
        _method_table(what, table, mean),
    )


def _full_data(table: Table, references: Sequence[Reference], contest: str) -> float | None:
    """The full data's mean recall where all of a contest shares one reference."""
    by_column = table.best_in == "column"
    shared = [r for r in references if contest in (r.columns if by_column else r.rows)]
    here = [reference.recall.mean.mean for reference in shared]
    return here[0] if len(here) == 1 and table.measure == "recall" else None


def _method_table(name: str, table: Table, of: Sequence[Line], marked: bool = True) -> Block:
    """One line for each that competes, one column for each contest."""
    contests = _contests(table, of)
    titles = [contest["title"] for contest in contests]
    return _grid(name, "", titles, [contest["entries"] for contest in contests], marked)


def _every_recall_section(table: Table, records: Sequence[Record]) -> Block | None:
    """A table for each contest: all recalls of all that compete."""
    if table.measure == "seconds":
        return None
    by_metric = [_contests(table, lines(table, records, metric)) for metric in METRICS]
    labels = list(map(metric_label, METRICS))
    tables = [
        _grid(f"recalls, {title}", title, labels, [contest["entries"] for contest in same])
        for same in zip(*by_metric, strict=True)
        for title in [same[0]["title"]]
    ]
    return blocks.section("All recalls", *tables)


def _grid(
    name: str,
    corner: str,
    titles: Sequence[str],
    columns: Sequence[Sequence[tuple[str, Entry]]],
    marked: bool = True,
) -> Block:
    """A table made of columns that all have the same names at their entries."""

    def cells(line: Sequence[tuple[str, Entry]]) -> list[Block]:
        numbers = (blocks.cell(e.text(), marked and e.best) for _, e in line)
        return [blocks.cell(line[0][0]), *numbers]

    return blocks.table(name, [corner, *titles], map(cells, zip(*columns, strict=True)))


def _time_section(table: Table, records: Sequence[Record]) -> Block | None:
    """Seconds of distillation; selections have none."""
    if table.measure == "seconds" or not any(record.seconds for record in records):
        return None
    plain = table.model_copy(update={"published": {}})
    return blocks.section(
        "Time",
        blocks.text("Seconds of distillation, validation included; selected sets need none."),
        _method_table("seconds", plain, lines(plain, records, "seconds"), marked=False),
    )


def _runs_section(records: Sequence[Record], folder: Path, versions: str) -> Block:
    head = ["row", "column", "seed", "mean", "pairs", "storage", "trained with", "folder"]
    quoted, all_of_them = shlex.quote(str(folder)), f"All {len(records)} results"
    return blocks.section(
        "Runs",
        blocks.table("runs", head, map(partial(_run_row, folder), records), all_of_them),
        blocks.text(
            "One of them in full, by the name of its folder; the same run again; this page:"
        ),
        blocks.command(f"lors report {quoted}/runs/NAME"),
        blocks.command(f"lors distill {quoted}/runs/NAME/config.yaml --out runs/again"),
        blocks.command(f"lors report {quoted}"),
        blocks.facts(("versions", versions)),
    )


def _run_row(folder: Path, record: Record) -> list[Block]:
    """Cells that only evaluate the set of another have no folder of their own."""
    name = cell_name(record.row, record.column, record.seed)
    words = (
        record.row,
        record.column,
        str(record.seed),
        "–" if record.mean is None else f"{record.mean:.2f}",
        str(record.pairs or "–"),
        f"{record.storage:.2f}" if record.storage else "–",
        record.failed or record.note,
        name if (folder / "runs" / name).is_dir() else "–",
    )
    return [blocks.cell(word) for word in words]


def _failures(records: Sequence[Record]) -> list[str]:
    return [
        f"No result: {record.row}, {record.column}, seed {record.seed}: {record.failed}"
        for record in records
        if record.failed
    ]
