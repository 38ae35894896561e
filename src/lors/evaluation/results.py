"""What networks reach that were trained on a set: rows and results as values.

Files of results hold the same values, and nothing in a file is believed unchecked:
``model_validate`` reads what ``content`` gives.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from lors.evaluation.frames import data_frame, html_table
from lors.evaluation.statistic import LABELS, Chance, Finite, Recalls, Statistic, Value, size_label

__all__ = [
    "CHANCE",
    "DISTILLED",
    "FULL_DATA",
    "MADE",
    "RANDOM_PAIRS",
    "SELECTED",
    "TITLE",
    "Readings",
    "Results",
    "Row",
    "chance_of",
    "in_one_sentence",
    "other_readings",
    "recall_table",
    "row_readings",
]

FULL_DATA, RANDOM_PAIRS = "full data", "random pairs"
"""Names of the rows that a set is compared with."""

CHANCE = "chance"
"""Name of the line that says what a random ranking reaches; no row, as nothing was trained."""

DISTILLED, SELECTED = "distilled set", "selected set"
MADE = (DISTILLED, SELECTED)
"""Names of the row of the set that a run made."""

TITLE = "Recall on the test split (%), epoch chosen on val"

LEGACY = "best on test (legacy)"
OTHERS = {"last": "mean, last epoch", "legacy": f"mean, {LEGACY}"}
"""Readings besides the epoch chosen on val, and their titles in tables."""

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Exact = Annotated[int, Field(ge=0, le=2**53)]
"""Stays an integer when it is read and written again."""


class Readings(Value):
    """Recalls on the test split by the epoch at which they are read.

    Args:
        last: after the last epoch.
        chosen: at the epoch with the best validation recall.
        legacy: at the epoch with the best *test* recall, the literature's habit; only if asked for.
    """

    last: Recalls | None = None
    chosen: Recalls
    legacy: Recalls | None = None


class Row(Value):
    """What networks reach that were trained on one set.

    Args:
        pairs: in the set.
        storage: in plain pairs.
        networks: how many were trained.
        note: the loss and rates they were trained with.
        readings: what they reach; ``recall`` in files.
        chance: what a random ranking reaches on the same test split; None in older files.
        bytes: what its numbers take, if it was asked for.

    >>> seven = dict.fromkeys(("ir1", "ir5", "ir10", "tr1", "tr5", "tr10", "mean"), [42.0, 44.0])
    >>> recalls = Recalls(**{name: Statistic.of(values) for name, values in seven.items()})
    >>> row = Row(
    ...     pairs=98, storage=100, networks=2, note="wbce", recall=Readings(chosen=recalls)
    ... )
    >>> row.mean, row.recall.ir1.mean, row.readings.last
    (43.0, 43.0, None)
    >>> print(row)
    mean recall 43.0 ± 1.4 of 2 networks, each trained on 98 pairs (wbce)
    """

    pairs: int = Field(ge=0)
    storage: Exact | Finite
    networks: int = Field(ge=0)
    note: str
    readings: Readings = Field(alias="recall")
    chance: Chance | None = None
    bytes: Exact | None = None

    @property
    def recall(self) -> Recalls:
        """At the epoch chosen on val: the reading that counts."""
        return self.readings.chosen

    @property
    def mean(self) -> float:
        """The field's single figure: the mean of six recalls, averaged over networks."""
        return self.recall.mean.mean

    def numbers(self) -> dict[str, float]:
        """Its numbers by name, for data frames."""
        found: dict[str, float] = {"pairs": self.pairs, "storage": self.storage}
        for label, each in self.recall.by_label().items():
            found |= {label: each.mean, f"{label} deviation": each.std}
        return found

    def _repr_html_(self) -> str:
        return html_table(recall_table({"set": self}), TITLE)

    def __str__(self) -> str:
        least = "" if self.chance is None else f"; chance is {self.chance.mean:.1f}"
        return (
            f"mean recall {self.recall.mean} of {self.networks} networks, each trained on "
            f"{self.pairs:,} pairs ({self.note}){least}"
        )

    __repr__ = __str__


class Results(Value):
    """What a run has measured: the content of ``results.json``.

    Args:
        iterations: of the distillation; None: nothing is known of the run.
        ended_after: how many of them were done, less where validation recall no longer rose.
        seconds_to_distil: validation included; None for a selection.
        peak_memory: of making the set, in bytes.
        versions: of the software that made it.
        rows: by name: ``full data``, ``random pairs``, and ``distilled set`` or ``selected set``.

    >>> seven = dict.fromkeys(("ir1", "ir5", "ir10", "tr1", "tr5", "tr10", "mean"), [42.0, 44.0])
    >>> recalls = Recalls(**{name: Statistic.of(values) for name, values in seven.items()})
    >>> row = Row(
    ...     pairs=98, storage=100, networks=2, note="wbce", recall=Readings(chosen=recalls)
    ... )
    >>> results = Results(iterations=500).with_row("distilled set", row)
    >>> results.distilled.mean
    43.0
    >>> results["distilled set"] == results.distilled, "full data" in results
    (True, False)
    """

    iterations: Annotated[int, Field(ge=0)] | None = None
    ended_after: Annotated[int, Field(ge=0)] | None = None
    seconds_to_distil: NotNegative | None = None
    peak_memory: Exact | NotNegative | None = None
    versions: Mapping[str, str] = {}
    rows: Mapping[str, Row] = {}

    def __getitem__(self, name: str) -> Row:
        try:
            return self.rows[name]
        except KeyError:
            known = ", ".join(map(repr, self.rows)) or "none"
            raise KeyError(f"no row {name!r} was measured; there are: {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.rows

    def __str__(self) -> str:
        if not self.rows:
            return "nothing has been measured yet"
        heads, *columns = recall_table(self.rows)  # a column for each row: it fits on a screen
        padded = [_padded(heads, str.ljust), *(_padded(column, str.rjust) for column in columns)]
        lines = map("  ".join, zip(*padded, strict=True))
        return "\n".join([TITLE, *(line.rstrip() for line in lines), *self._below()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.rows:
            return html.escape(str(self))
        return html_table(recall_table(self.rows), TITLE, self._below())

    def _below(self) -> list[str]:
        sized = {name: _storage(row) for name, row in self.rows.items() if row.bytes}
        sizes = [f"Storage of the {name} in plain pairs: {size}." for name, size in sized.items()]
        return [*sizes, *filter(None, [in_one_sentence(self.rows)])]

    def to_pandas(self) -> Any:
        """A data frame with a line for each row, and means and deviations as columns."""
        return data_frame({name: row.numbers() for name, row in self.rows.items()})

    @property
    def distilled(self) -> Row:
        """The row of the set that the run made, be it distilled or selected."""
        return self[next((name for name in MADE if name in self), DISTILLED)]

    @property
    def full_data(self) -> Row:
        """What networks trained on all real pairs reach."""
        return self[FULL_DATA]

    @property
    def random_pairs(self) -> Row:
        """What networks trained on random pairs of equal storage reach."""
        return self[RANDOM_PAIRS]

    @property
    def seconds_per_iteration(self) -> float | None:
        """Of the distillation, validation included."""
        if self.seconds_to_distil is None or not self.iterations:
            return None
        return self.seconds_to_distil / (self.ended_after or self.iterations)

    def with_row(self, name: str, row: Row) -> Results:
        """These results and one row more."""
        return self.model_copy(update={"rows": {**self.rows, name: row}})


def recall_table(rows: Mapping[str, Row]) -> list[list[str]]:
    """The recalls of rows as text: a line of titles, then a line for each."""
    lines = [
        [reading, f"{row.pairs:,}", *map(str, recalls.by_label().values())]
        for name, row in rows.items()
        for reading, recalls in row_readings(name, row).items()
    ]
    least = chance_of(rows)
    random = [] if least is None else [f"{value:.1f}" for value in least.by_label().values()]
    return [["", "pairs", *LABELS], *lines, *([[CHANCE, "", *random]] if random else [])]


def row_readings(name: str, row: Row) -> dict[str, Recalls]:
    """The recalls of a row that tables show; of a set, also the literature's, labelled."""
    found = {name: row.recall}
    if name in MADE and row.readings.legacy is not None:
        found[f"{name}, {LEGACY}"] = row.readings.legacy
    return found


def chance_of(rows: Mapping[str, Row]) -> Chance | None:
    """What a random ranking reaches on the test split of rows, if one of them knows."""
    return next((row.chance for row in rows.values() if row.chance is not None), None)


def in_one_sentence(rows: Mapping[str, Row]) -> str:
    """What the set that a run made is worth; empty if it was not measured.

    >>> seven = ("ir1", "ir5", "ir10", "tr1", "tr5", "tr10", "mean")
    >>> def row(pairs, mean):
    ...     recalls = Recalls(**dict.fromkeys(seven, Statistic(mean=mean, std=0.0)))
    ...     reached = Readings(chosen=recalls)
    ...     return Row(pairs=pairs, storage=pairs, networks=1, note="", recall=reached)
    >>> in_one_sentence({"full data": row(16_000, 42.8), "distilled set": row(92, 41.1)})
    '92 pairs reach 96 % of what all 16,000 reach: a mean recall of 41.1 against 42.8.'
    """
    made = next((rows[name] for name in MADE if name in rows), None)
    if made is None:
        return ""
    chance, full = chance_of(rows), rows.get(FULL_DATA)
    least = "" if chance is None else f", where chance is {chance.mean:.1f}"
    if chance is not None and made.mean <= chance.mean:
        least = f", no more than chance ({chance.mean:.1f})"
    if full is None or not full.mean:
        return f"{made.pairs:,} pairs reach a mean recall of {made.mean:.1f}{least}."
    return (
        f"{made.pairs:,} pairs reach {100 * made.mean / full.mean:.0f} % of what all "
        f"{full.pairs:,} reach: a mean recall of {made.mean:.1f} against {full.mean:.1f}{least}."
    )


def other_readings(rows: Mapping[str, Row]) -> dict[str, dict[str, Statistic]]:
    """The mean recall of every row at other epochs, by title; only readings that all rows have."""
    found = {
        title: {name: getattr(row.readings, reading) for name, row in rows.items()}
        for reading, title in OTHERS.items()
    }
    return {
        title: {name: recalls.mean for name, recalls in each.items()}
        for title, each in found.items()
        if None not in each.values()
    }


def _padded(cells: Sequence[str], pad: Callable[[str, int], str]) -> list[str]:
    return [pad(cell, max(map(len, cells))) for cell in cells]


def _storage(row: Row) -> str:
    """The storage of a row in plain pairs, and in bytes if these are known."""
    size = "" if row.bytes is None else f" ({size_label(row.bytes)})"
    return f"{row.storage:,.2f}{size}"
