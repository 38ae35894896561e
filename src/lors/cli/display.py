"""What a terminal shows: live progress, and tables of recall."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from lors.cli.app import console
from lors.stopping import listening

__all__ = ["Display", "results_table"]

T = TypeVar("T")


def results_table(rows: dict[str, Any]) -> Table:
    """Recalls on the test split, one column per set: mean ± deviation over networks."""
    from lors.retrieval import METRICS, metric_label

    table = Table("", title="Recall on the test split (%), epoch chosen on val")
    for name in rows:
        table.add_column(name, justify="right")
    table.add_row("pairs", *(str(row["pairs"]) for row in rows.values()))
    table.add_row("storage in pairs", *(f"{row['storage']:.2f}" for row in rows.values()))
    table.add_row("trained with", *(row["note"] for row in rows.values()), end_section=True)
    for metric in (*METRICS, "mean"):
        cells = (_cell(row["recall"]["chosen"][metric]) for row in rows.values())
        table.add_row(
            "mean" if metric == "mean" else metric_label(metric),
            *cells,
            style="bold" if metric == "mean" else "",
            end_section=metric in ("ir10", "tr10", "mean"),
        )
    labels = {"last": "mean, last epoch", "legacy": "mean, best on test (legacy)"}
    for reading, label in labels.items():
        if all(reading in row["recall"] for row in rows.values()):
            table.add_row(label, *(_cell(row["recall"][reading]["mean"]) for row in rows.values()))
    return table


def _cell(value: dict[str, float]) -> str:
    return f"{value['mean']:.1f} ± {value['std']:.1f}"


class Display:
    """Live progress on a terminal, one line per kind of work; implements ``lors.Progress``."""

    def __init__(self) -> None:
        self._bars = Bars(
            TextColumn("{task.description:28}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[facts]}"),
            console=console,
        )
        self._task = TaskID(0)
        self._facts: dict[str, Any] = {}
        self._signals = ExitStack()

    def __enter__(self) -> Display:
        self._signals.enter_context(listening())
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bars.stop()
        self._signals.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            if not console.quiet:
                text = "Interrupted. The same command continues where it stopped."
                Console(stderr=True).print(text)
            sys.exit(getattr(kind, "code", 130))

    def track(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        if not total:
            return
        task = self._task = self._bars.add_task(what, total=total, facts="")
        for item in items:
            yield item
            self._bars.advance(task)

    def note(self, **facts: Any) -> None:
        self._facts |= facts
        shown = " ".join(
            f"{name.replace('_', ' ')} {value:.3g}" for name, value in self._facts.items()
        )
        self._bars.update(self._task, facts=shown)

    def say(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)
