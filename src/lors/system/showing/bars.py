"""Progress on a terminal: a row with a bar for each kind of work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import Progress as Rows
from rich.progress import ProgressColumn, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from lors.system.errors import printable
from lors.system.showing.work import Clock, Work, duration
from lors.system.showing.works import Works

__all__ = ["Bars"]

NARROW, WIDE = 8, 24
"""How wide a bar may be, in characters."""

SPARE = 4
"""Lines of the screen that are kept free of finished rows: for rows to come."""


class Bars(Works):
    """Shows each kind of work as a row: the work, a bar, the count, the time left, the facts.

    Facts get the room that the rest leaves: where a terminal is narrow, the last ones are left out.

    Args:
        console: the terminal.
        clock: gives the time in seconds; default: that of the console.
    """

    def __init__(self, console: Console, clock: Clock | None = None) -> None:
        super().__init__(clock or console.get_time)
        self._console = console
        self._tasks: dict[Work, TaskID] = {}
        self.rows = self._no_rows()

    def _no_rows(self) -> Rows:
        return Rows(
            _What(Column(overflow="ellipsis")),
            _Bar(Column(no_wrap=True)),
            _Count(Column(no_wrap=True, justify="right")),
            _Time(Column(no_wrap=True)),
            _FactsColumn(Column(ratio=1, no_wrap=True)),
            console=self._console,
            expand=True,
            get_time=self._clock,
            # Other output goes above the rows, but stays in a file if it goes there.
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )

    def _open(self) -> None:
        self.rows = self._no_rows()  # those of before are left where they are
        self.rows.start()

    def _close(self) -> None:
        """Leave the rows as they are, without what could not be counted."""
        self._forget_uncounted()
        self.rows.stop()
        self._tasks.clear()

    def say(self, text: str) -> None:
        """See ``lors.system.progress.Progress``."""
        self._console.print(printable(text), markup=False, highlight=False)

    def _begin(self, what: str, total: int, done: int) -> Work:
        work = super()._begin(what, total, done)
        self._make_room()
        text = "  " * (len(self._works) - 1) + what
        self._tasks[work] = self.rows.add_task(text, total=total or None, completed=done, work=work)
        return work

    def _advance(self, work: Work) -> None:
        super()._advance(work)
        self.rows.advance(self._tasks[work])

    def _end(self, work: Work) -> None:
        """Keep the row of finished work; rows within it, or of what was not counted, go."""
        for ended in self._works[self._works.index(work) :]:
            task = self._tasks.pop(ended)
            self.rows.stop_task(task)
            if not ended.total or ended is not self._works[0]:
                self.rows.remove_task(task)
        super()._end(work)

    def _make_room(self) -> None:
        """Let the oldest finished rows scroll away; rows below the screen would not be seen."""
        console, under_way = self._console, self._tasks.values()
        finished = [task for task in self.rows.tasks if task.id not in under_way]
        excess = len(self.rows.tasks) + SPARE - console.height
        for task in finished[: max(0, excess)]:
            console.print(self.rows.make_tasks_table([task]))
            self.rows.remove_task(task.id)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


class _What(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


class _Bar(ProgressColumn):
    def render(self, task: Task) -> _FittingBar:
        return _FittingBar(task)


class _FittingBar:
    """A bar of an eighth of the terminal's width."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        task = self._task
        yield ProgressBar(
            total=task.total,
            completed=task.completed,
            width=_bar_width(console),
            pulse=task.total is None,
            animation_time=task.get_time(),
        )

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_bar_width(console), _bar_width(console))


def _bar_width(console: Console) -> int:
    return max(NARROW, min(WIDE, console.width // 8))


class _Count(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(task.fields["work"].count(), style="progress.download")


class _Time(ProgressColumn):
    """The time left; of what is finished, the time it took."""

    def render(self, task: Task) -> Text:
        work: Work = task.fields["work"]
        if task.finished or not work.total:
            return Text(duration(task.elapsed), style="progress.elapsed")
        return Text(duration(work.left(task.get_time())), style="progress.remaining")


class _FactsColumn(ProgressColumn):
    def render(self, task: Task) -> _Facts:
        return _Facts(task.fields["work"].shown_facts())


class _Facts:
    """As many facts as there is room for, none of them cut."""

    def __init__(self, facts: Sequence[str]) -> None:
        self._facts = facts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = ""
        for fact in self._facts:
            longer = f"{shown} {fact}".lstrip()
            if len(longer) > options.max_width:
                break
            shown = longer
        yield Text(shown, no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(0, len(" ".join(self._facts)))
