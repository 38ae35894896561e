"""What networks reach that were trained on a set: statistics, recalls, rows and results as values.

Files of results hold the same values, and nothing in a file is believed unchecked:
``model_validate`` reads what ``content`` gives.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lors.evaluation.recall import METRICS, metric_label

__all__ = [
    "DISTILLED",
    "FULL_DATA",
    "LABELS",
    "MADE",
    "RANDOM_PAIRS",
    "SELECTED",
    "TITLE",
    "MeanRecall",
    "Readings",
    "Recalls",
    "Results",
    "Row",
    "Statistic",
    "Value",
    "other_readings",
    "plus_minus",
    "recall_table",
]

FULL_DATA, RANDOM_PAIRS = "full data", "random pairs"
"""Names of the rows that a set is compared with."""

DISTILLED, SELECTED = "distilled set", "selected set"
MADE = (DISTILLED, SELECTED)
"""Names of the row of the set that a run made."""

LABELS = (*map(metric_label, METRICS), "mean")
"""Of the six recalls and their mean, in the order of tables."""

TITLE = "Recall on the test split (%), epoch chosen on val"

OTHERS = {"last": "mean, last epoch", "legacy": "mean, best on test (legacy)"}
"""Readings besides the epoch chosen on val, and their titles in tables."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Exact = Annotated[int, Field(ge=0, le=2**53)]
"""Stays an integer when it is read and written again."""


def plus_minus(mean: float, deviation: float | None, form: str = ".1f", mark: str = "±") -> str:
    r"""A mean and its deviation as every table, card and page shows them.

    Args:
        mean: the number.
        deviation: of it; None: the number stands alone.
        form: of both, as in ``format``; a sign is for the mean only.
        mark: between them.

    >>> plus_minus(43.71, 0.5), plus_minus(43.71, None)
    ('43.7 ± 0.5', '43.7')
    >>> plus_minus(2, 0.25, "+.2f", r"$\pm$")
    '+2.00 $\\pm$ 0.25'
    """
    text = format(mean, form)
    return text if deviation is None else f"{text} {mark} {format(deviation, form.lstrip('+'))}"


class Value(BaseModel):
    """Immutable; fields beyond those named are kept, as a newer version may write them."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    def content(self) -> dict[str, Any]:
        """As files hold it: plain values, ready for JSON, without what is not known."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Statistic(Value):
    """A number over networks: its mean and standard deviation, in percent for recalls.

    >>> found = Statistic.of([43.0, 44.0])
    >>> found.mean
    43.5
    >>> print(found)
    43.5 ± 0.7
    """

    mean: Finite
    std: Finite

    @classmethod
    def of(cls, values: Sequence[float]) -> Statistic:
        """The statistic of some values; a single one deviates by 0."""
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(mean=statistics.fmean(values), std=deviation)

    def __str__(self) -> str:
        return plus_minus(self.mean, self.std)


class MeanRecall(Value):
    """The mean of the six recalls, where the others may be missing.

    Args:
        mean: over networks.
    """

    mean: Statistic


class Recalls(Value):
    """Six recalls and their mean, each over networks and in percent.

    Args:
        ir1: image retrieval at 1: captions query images. And so on.
        tr1: text retrieval at 1: images query captions. And so on.
        mean: of the six, the field's single figure.

    >>> ten = Statistic(mean=10.0, std=1.0)
    >>> recalls = Recalls(ir1=ten, ir5=ten, ir10=ten, tr1=ten, tr5=ten, tr10=ten, mean=ten)
    >>> recalls.ir1.mean
    10.0
    >>> print(recalls.by_label()["IR@1"])
    10.0 ± 1.0
    """

    ir1: Statistic
    ir5: Statistic
    ir10: Statistic
    tr1: Statistic
    tr5: Statistic
    tr10: Statistic
    mean: Statistic

    def by_label(self) -> dict[str, Statistic]:
        """All of them by the names of tables: IR@1, …, TR@10, mean."""
        names = (*METRICS, "mean")
        return {label: getattr(self, n) for label, n in zip(LABELS, names, strict=True)}


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

    @property
    def recall(self) -> Recalls:
        """At the epoch chosen on val: the reading that counts."""
        return self.readings.chosen

    @property
    def mean(self) -> float:
        """The field's single figure: the mean of six recalls, averaged over networks."""
        return self.recall.mean.mean

    def __str__(self) -> str:
        return (
            f"mean recall {self.recall.mean} of {self.networks} networks, each trained on "
            f"{self.pairs:,} pairs ({self.note})"
        )


class Results(Value):
    """What a run has measured: the content of ``results.json``.

    Args:
        iterations: of the distillation; None: nothing is known of the run.
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
        return "\n".join([TITLE, *lines])

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
        return self.seconds_to_distil / self.iterations

    def with_row(self, name: str, row: Row) -> Results:
        """These results and one row more."""
        return self.model_copy(update={"rows": {**self.rows, name: row}})


def recall_table(rows: Mapping[str, Row]) -> list[list[str]]:
    """The recalls of rows as text: a line of titles, then a line for each."""
    lines = (
        [name, f"{row.pairs:,}", *map(str, row.recall.by_label().values())]
        for name, row in rows.items()
    )
    return [["", "pairs", *LABELS], *lines]


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
