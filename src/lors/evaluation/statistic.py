"""Numbers over networks: means with their deviations, and the six recalls."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lors.evaluation.recall import METRICS, Recall, metric_label

__all__ = [
    "LABELS",
    "Chance",
    "Finite",
    "MeanRecall",
    "Recalls",
    "Statistic",
    "Value",
    "plus_minus",
    "size_label",
]

LABELS = (*map(metric_label, METRICS), "mean")
"""Of the six recalls and their mean, in the order of tables."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


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


def size_label(size: int) -> str:
    """A number of bytes for people.

    >>> size_label(60_500_000), size_label(4200)
    ('60.5 MB', '4.2 kB')
    """
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


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


class Chance(Value):
    """What a random ranking reaches on average on a test split: six recalls and their mean.

    >>> Chance.of(Recall(1.0, 5.0, 10.0, 1.0, 5.0, 8.0)).mean
    5.0
    """

    ir1: Finite
    ir5: Finite
    ir10: Finite
    tr1: Finite
    tr5: Finite
    tr10: Finite
    mean: Finite

    @classmethod
    def of(cls, recall: Recall) -> Chance:
        """As files hold it; see ``lors.evaluation.recall.chance``."""
        return cls(**{name: getattr(recall, name) for name in (*METRICS, "mean")})

    def by_label(self) -> dict[str, float]:
        """All of them by the names of tables: IR@1, …, TR@10, mean."""
        names = (*METRICS, "mean")
        return {label: getattr(self, n) for label, n in zip(LABELS, names, strict=True)}


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
