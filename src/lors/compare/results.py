"""The results of a comparison: tidy records, and the tables made of them."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lors import artifacts
from lors.compare.render import Line, latex, markdown
from lors.compare.table import METRICS, Table

__all__ = ["Record", "record_of", "write_results"]


@dataclass(frozen=True)
class Record:
    """One run of one cell: recalls in percent, averaged over the networks trained on its set.

    Args:
        row: label.
        column: label.
        seed: of the run.
        pairs: in the set.
        storage: in plain pairs.
        networks: how many were trained on the set.
        seconds: of the distillation, validation included; none for selected sets.
        seconds_per_iteration: likewise.
        note: loss and rates that the set was trained with.
        failed: why there is no result.
    """

    row: str
    column: str
    seed: int
    pairs: int = 0
    storage: float = 0.0
    networks: int = 0
    ir1: float = float("nan")
    ir5: float = float("nan")
    ir10: float = float("nan")
    tr1: float = float("nan")
    tr5: float = float("nan")
    tr10: float = float("nan")
    mean: float = float("nan")
    seconds: float | None = None
    seconds_per_iteration: float | None = None
    note: str = ""
    failed: str = ""


def record_of(
    row: str,
    column: str,
    seed: int,
    result: dict[str, Any],
    seconds: float | None,
    iterations: int | None,
) -> Record:
    """The record of a row of ``results.json``."""
    recalls = {name: result["recall"]["chosen"][name]["mean"] for name in (*METRICS, "mean")}
    return Record(
        row,
        column,
        seed,
        pairs=result["pairs"],
        storage=result["storage"],
        networks=result["networks"],
        seconds=seconds,
        seconds_per_iteration=None if not iterations or seconds is None else seconds / iterations,
        note=result["note"],
        **recalls,
    )


def write_results(
    table: Table, records: Sequence[Record], references: Sequence[dict[str, Any]], out: Path
) -> None:
    """Write ``results.csv``, ``results.json``, ``table.md`` and ``table.tex``.

    Args:
        table: what was compared.
        records: what is known so far.
        references: the recall of the full data, for the rows it belongs to.
        out: the folder.
    """
    text = io.StringIO()
    lines = csv.DictWriter(text, [field.name for field in fields(Record)])
    lines.writeheader()
    lines.writerows(asdict(record) for record in records)
    artifacts.write_text(out / "results.csv", text.getvalue())
    everything = {
        "title": table.title,
        "versions": artifacts.versions(),
        "full_data": list(references),
        "records": [asdict(record) for record in records],
    }
    artifacts.write_text(out / "results.json", json.dumps(everything, indent=2))
    notes = [_reference(reference, len(table.rows)) for reference in references]
    summary, detail = _summary(table, records), _detail(table, records)
    columns = [column.label for column in table.columns]
    blocks = [("Mean recall" if table.measure == "recall" else "Seconds per iteration", summary)]
    if table.measure == "recall":
        blocks.append(("All recalls", detail))
    artifacts.write_text(out / "table.md", markdown(table.title, columns, blocks, notes))
    artifacts.write_text(out / "table.tex", latex(table.title, columns, detail or summary, notes))


def _summary(table: Table, records: Sequence[Record]) -> list[Line]:
    return [_line(table, records, row.label, "", row.label) for row in table.rows]


def _detail(table: Table, records: Sequence[Record]) -> list[Line]:
    if table.measure == "seconds":
        return []
    return [
        _line(table, records, row.label, metric, f"{row.label}, {metric[:2].upper()}@{metric[2:]}")
        for row in table.rows
        for metric in METRICS
    ]


def _line(table: Table, records: Sequence[Record], row: str, metric: str, label: str) -> Line:
    """One line of numbers: a metric, or without one, what the table measures."""
    name = metric or ("mean" if table.measure == "recall" else "seconds_per_iteration")
    values: list[tuple[float, float] | None] = []
    published: list[float | None] = []
    for column in table.columns:
        found = [r for r in records if (r.row, r.column) == (row, column.label) and not r.failed]
        runs = [getattr(r, name) for r in found]
        values.append(_spread([value for value in runs if value is not None]))
        paper = table.published.get(row, {}).get(column.label)
        if not paper:
            published.append(None)
        else:
            published.append(paper[METRICS.index(metric)] if metric else statistics.fmean(paper))
    return Line(label, values, published, lowest=table.measure == "seconds")


def _spread(values: list[float]) -> tuple[float, float] | None:
    if not values:
        return None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _reference(reference: dict[str, Any], rows: int) -> str:
    mean = reference["recall"]["mean"]
    where = "" if len(reference["rows"]) == rows else f" ({', '.join(reference['rows'])})"
    return f"Full data{where}: mean recall {mean['mean']:.1f} ± {mean['std']:.1f}."
