"""The results of a comparison: tidy records, and the tables made of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from lors.comparison.remaining import remaining
from lors.comparison.render import Block, Entry, Line, latex, markdown, marked
from lors.comparison.table import Table
from lors.evaluation.recall import METRICS, metric_label
from lors.evaluation.results import CHANCE, Results, Row
from lors.evaluation.statistic import Chance, MeanRecall, Recalls, Value
from lors.files import artifacts
from lors.files.tables import write_csv

__all__ = [
    "ClosedForm",
    "Filled",
    "Record",
    "Reference",
    "chance_line",
    "lines",
    "record_of",
    "reference_note",
    "write_results",
]

RANKED = (*METRICS, "mean", "seconds_per_iteration")
"""What methods are compared by; the rest are costs."""

DIGITS = {"seconds_per_iteration": 3, "seconds": 0, "gigabytes": 2}
"""Behind the point, where it is not one."""


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
        ir1: and the other recalls; none if the run failed.
        seconds: of the distillation, validation included; none for selected sets.
        seconds_per_iteration: likewise.
        gigabytes: peak memory of making the set.
        note: loss and rates that the set was trained with.
        failed: why there is no result.
    """

    row: str
    column: str
    seed: int
    pairs: int = 0
    storage: float = 0.0
    networks: int = 0
    ir1: float | None = None
    ir5: float | None = None
    ir10: float | None = None
    tr1: float | None = None
    tr5: float | None = None
    tr10: float | None = None
    mean: float | None = None
    seconds: float | None = None
    seconds_per_iteration: float | None = None
    gigabytes: float | None = None
    note: str = ""
    failed: str = ""


class ClosedForm(Value):
    """What heads in closed form reach, with no training set, in the storage of a row.

    Args:
        mean: recall of the test split.
        about: which heads were the best on val.
    """

    mean: float
    about: str


class Reference(Value):
    """The recall of the full data, and the rows and columns that it belongs to.

    Args:
        rows: labels.
        columns: labels.
        recall: of networks trained on the full data.
        chances: recalls of a random ranking.
        taught: of networks that all experts together taught on the full data; None: not measured.
        heads: what heads in closed form reach, by row; empty where a trunk trains.
    """

    rows: list[str]
    columns: list[str]
    recall: Recalls | MeanRecall
    chances: Chance | None = None
    taught: Recalls | MeanRecall | None = None
    heads: dict[str, ClosedForm] = {}  # noqa: RUF012 - pydantic copies it

    @property
    def mean(self) -> float:
        """The field's single figure, averaged over networks."""
        return self.recall.mean.mean


def record_of(row: str, column: str, seed: int, result: Row, run: Results) -> Record:
    """The record of a row of results, from its run or of the same set evaluated anew."""
    memory = run.peak_memory
    recalls = {name: getattr(result.recall, name).mean for name in (*METRICS, "mean")}
    return Record(
        row,
        column,
        seed,
        pairs=result.pairs,
        storage=result.storage,
        networks=result.networks,
        seconds=run.seconds_to_distil,
        seconds_per_iteration=run.seconds_per_iteration,
        gigabytes=None if memory is None else memory / 1e9,
        note=result.note,
        **recalls,
    )


@dataclass(frozen=True)
class Filled:
    """A table with its results.

    Args:
        table: what was compared.
        records: one for each cell and seed.
        references: the recall of the full data, for the rows it belongs to.
    """

    table: Table
    records: Sequence[Record]
    references: Sequence[Reference]


def write_results(
    table: Table, records: Sequence[Record], references: Sequence[Reference], out: Path
) -> None:
    """Write ``results.csv``, ``results.json``, ``table.md`` and ``table.tex``.

    Args:
        table: what was compared.
        records: what is known so far.
        references: the recall of the full data, for the rows it belongs to.
        out: the folder.
    """
    columns = [field.name for field in fields(Record)]
    values = (list(asdict(record).values()) for record in records)
    write_csv(out / "results.csv", columns, values)
    everything = {
        "title": table.title,
        "table": table.model_dump(mode="json"),
        "versions": artifacts.versions(),
        "full_data": [reference.content() for reference in references],
        "records": [asdict(record) for record in records],
    }
    artifacts.write_text(out / "results.json", json.dumps(everything, indent=2))
    notes = [reference_note(reference, table) for reference in references]
    columns = [column.label for column in table.columns]
    blocks: list[Block]
    if table.measure == "seconds":
        every = lines(table, records, "seconds_per_iteration")
        blocks = [("Seconds per iteration", every)]
    else:
        by_metric = [lines(table, records, metric) for metric in METRICS]
        every = [line for row in zip(*by_metric, strict=True) for line in row]
        every += [line for metric in METRICS for line in chance_line(table, references, metric)]
        mean = [*lines(table, records, "mean"), *chance_line(table, references)]
        blocks = [("Mean recall", mean), ("All recalls", every)]
        costs = {
            "Storage, in plain pairs": "storage",
            "Seconds to distil": "seconds",
            "Peak memory, in GB": "gigabytes",
        }
        blocks += [(heading, lines(table, records, cost)) for heading, cost in costs.items()]
    tables = {}
    if shown := remaining(table, records, references):
        tables["What remains under controls"] = shown
    page = markdown(table.title, columns, blocks, notes, tables)
    artifacts.write_text(out / "table.md", page)
    artifacts.write_text(out / "table.tex", latex(table.title, columns, every, notes))


def lines(table: Table, records: Sequence[Record], metric: str) -> list[Line]:
    """The table of one metric or cost; of a metric, the best of each row or column is marked."""
    grid = [
        [_entry(table, records, row.label, column.label, metric) for column in table.columns]
        for row in table.rows
    ]
    places = [[(i, j) for j in range(len(table.columns))] for i in range(len(table.rows))]
    if table.best_in == "column":
        places = [list(column) for column in zip(*places, strict=True)]
    for rivals in places if metric in RANKED else ():
        entries = marked([grid[i][j] for i, j in rivals], lowest=table.measure == "seconds")
        for (i, j), entry in zip(rivals, entries, strict=True):
            grid[i][j] = entry
    what = f", {metric_label(metric)}" if metric in METRICS else ""
    return [Line(row.label + what, line) for row, line in zip(table.rows, grid, strict=True)]


def chance_line(table: Table, references: Sequence[Reference], metric: str = "mean") -> list[Line]:
    """What a random ranking reaches in each column; no line where that is not known."""
    known = [(r.columns, getattr(r.chances, metric)) for r in references if r.chances is not None]
    if not known or table.measure == "seconds":
        return []

    def entry(column: str) -> Entry:
        here = {value for columns, value in known if column in columns}
        found = here or {value for _, value in known}  # other networks on the same data
        return Entry(found.pop()) if len(found) == 1 else Entry()

    what = f", {metric_label(metric)}" if metric in METRICS else ""
    return [Line(CHANCE + what, [entry(column.label) for column in table.columns])]


def _entry(table: Table, records: Sequence[Record], row: str, column: str, metric: str) -> Entry:
    found = [getattr(r, metric) for r in records if (r.row, r.column) == (row, column)]
    values = [value for value in found if value is not None]
    published = None
    if metric in RANKED:
        published = _published(table.published.get(row, {}).get(column, []), metric)
    digits = DIGITS.get(metric, 1)
    if not values:
        return Entry(published=published, digits=digits)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Entry(statistics.fmean(values), deviation, published, digits=digits)


def _published(paper: list[float], metric: str) -> float | None:
    """The paper's number of a metric, where it reports all six recalls or just this number."""
    if metric in METRICS:
        return paper[METRICS.index(metric)] if len(paper) == len(METRICS) else None
    return statistics.fmean(paper) if paper else None


def reference_note(reference: Reference, table: Table) -> str:
    """Full data, with where it belongs if it is not the reference of the whole table."""
    belongs = ((reference.rows, table.rows), (reference.columns, table.columns))
    where = [", ".join(mine) for mine, every in belongs if len(mine) < len(every)]
    which = f" ({'; '.join(where)})" if where else ""
    taught = reference.taught
    note = f"Full data{which}: mean recall {reference.recall.mean}"
    note += f"; taught by the experts: {taught.mean}." if taught is not None else "."
    for row, heads in reference.heads.items():
        note += (
            f" Heads in closed form, stored in the place of {row}: mean recall {heads.mean:.1f} "
            f"({heads.about})."
        )
    return note
