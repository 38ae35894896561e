"""What commands show: progress, and tables of recall."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from rich.table import Table

from lors.cli.app import console, end_interrupted
from lors.system.showing import shown_progress
from lors.system.showing.works import Works
from lors.system.stopping import listening, quitting

if TYPE_CHECKING:
    from lors.evaluation.results import Row

__all__ = ["LOADING", "PREPARING", "Display", "results_table"]

T = TypeVar("T")

LOADING = "loading PyTorch and the models"
"""What a command does in its first seconds: it imports."""

LOADS = (LOADING, "loading PyTorch")
"""When modules are imported."""
PREPARING = "preparing data and networks"

STARTED = time.monotonic()
"""About when the program started; lines in a log count from here."""


def results_table(rows: Mapping[str, Row]) -> Table:
    """Recalls on the test split, one column per set: mean ± deviation over networks."""
    from lors.evaluation.results import (
        CHANCE,
        TITLE,
        chance_of,
        other_readings,
        row_readings,
    )
    from lors.evaluation.statistic import LABELS, size_label

    table = Table("", title=TITLE)
    columns = [
        (reading, row, recalls)
        for name, row in rows.items()
        for reading, recalls in row_readings(name, row).items()
    ]
    for reading, _, _ in columns:
        table.add_column(reading, justify="right")
    least = chance_of(rows)
    if least is not None:
        table.add_column(CHANCE, justify="right")
    table.add_row("pairs", *(f"{row.pairs:,}" for _, row, _ in columns))
    table.add_row("storage in pairs", *(f"{row.storage:,.2f}" for _, row, _ in columns))
    sizes = ["" if row.bytes is None else size_label(row.bytes) for _, row, _ in columns]
    if any(sizes):
        table.add_row("storage in bytes", *sizes)
    notes = (row.note if reading in rows else "" for reading, row, _ in columns)
    table.add_row("trained with", *notes, end_section=True)
    for label in LABELS:
        table.add_row(
            label,
            *(str(recalls.by_label()[label]) for _, _, recalls in columns),
            *([] if least is None else [f"{least.by_label()[label]:.1f}"]),
            style="bold" if label == "mean" else "",
            end_section=label in ("IR@10", "TR@10", "mean"),
        )
    for title, means in other_readings(rows).items():
        shown = (str(means[name]) if name in means else "" for name, _, _ in columns)
        table.add_row(title, *shown)
    return table


class Display:
    """Shows the progress of a command and ends it after a signal; implements ``lors.Progress``.

    All ranks but the first show nothing.

    Args:
        doing: what happens first, e.g. ``"loading PyTorch"``.
    """

    def __init__(self, doing: str = "") -> None:
        self._doing = doing
        self._shown = Works()
        self._signals = ExitStack()

    def __enter__(self) -> Display:
        self._shown = shown_progress(console.quiet, console, STARTED)
        self._shown.start()
        self.doing(self._doing)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._shown.stop()
        self._signals.close()
        if isinstance(error, KeyboardInterrupt):
            end_interrupted(error)

    def doing(self, what: str) -> None:
        """Show what is happening until something can be counted.

        While it is loading, a signal ends the process at once: an exception in the middle of an
        import may be lost. After that, it is an exception, so that what was done can be saved.
        """
        self._signals.close()
        self._signals.enter_context(quitting(self._shown.stop) if what in LOADS else listening())
        if what:
            self._shown.doing(what)

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        """See ``lors.system.progress.Progress``."""
        return self._shown.track(items, what, total, done)

    def note(self, **facts: Any) -> None:
        """See ``lors.system.progress.Progress``."""
        self._shown.note(**facts)

    def say(self, text: str) -> None:
        """See ``lors.system.progress.Progress``."""
        self._shown.say(text)
