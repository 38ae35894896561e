"""What is wrong with a dataset: all of it in one report, instead of the first mistake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.files.artifacts import home
from lors.files.cache import cache_errors, fingerprint
from lors.files.tables import write_csv
from lors.system.errors import InputError, printable, shortened
from lors.system.progress import Progress

__all__ = ["BadDataError", "Problems", "collecting", "report", "write_problems"]

SHOWN = 20
"""Problems that a report lists; the others are counted."""


class BadDataError(InputError):
    """A dataset has problems. The message is a sentence and a line for each of the first.

    Args:
        message: the lines.
        problems: all of them.
        total: how many rows were read.
    """

    def __init__(self, message: str, problems: Sequence[BadRowError] = (), total: int = 0) -> None:
        super().__init__("")
        self.args = ("\n".join(shortened(printable(line), 400) for line in message.split("\n")),)
        self.problems, self.total = tuple(problems), total


class Problems:
    """Collects what is wrong with the rows of a dataset, so that reading can go on.

    ``with problems:`` around the code for one row keeps the ``BadRowError`` that it raises.

    >>> from lors.system.progress import Silent
    >>> problems = Problems(None, Silent())
    >>> for row, caption in enumerate(["a dog", "", ""]):
    ...     with problems:
    ...         if not caption:
    ...             raise BadRowError(f"row {row}: the caption is empty", "empty captions")
    >>> problems.settle(3)
    Traceback (most recent call last):
    lors.data.problems.BadDataError: 2 problems in 3 rows (empty captions: 2): correct them
      row 1: the caption is empty
      row 2: the caption is empty

    Args:
        config: says whether bad rows are left out; None for what is in memory, where they never
            are.
        progress: is told what was left out.
    """

    def __init__(self, config: DataConfig | None, progress: Progress) -> None:
        self.skip = config is not None and config.skip_bad
        self._config, self._progress = config, progress
        self.found: list[BadRowError] = []

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, BadRowError):
            self.add(error)
            return True
        return False

    def add(self, problem: BadRowError) -> None:
        """Keep a problem."""
        self.found.append(problem.with_traceback(None))

    def settle(self, total: int, what: str = "rows") -> None:
        """Raise all problems at once; or, if bad rows are left out, say how many and list them.

        Args:
            total: how many rows there are.
            what: they are.

        Raises:
            BadDataError: there are problems, and ``data.skip_bad`` is not set.
        """
        found, self.found = self.found, []
        if not found:
            return
        if not self.skip:
            raise report(found, total, what, skippable=self._config is not None)
        assert self._config is not None
        name = re.sub(r"[^\w.-]+", "-", self._config.title())[:100]
        mark = fingerprint(*(problem.kind + str(problem).replace("\0", "") for problem in found))
        path = home() / "skipped" / f"{name}-{mark}.csv"
        with cache_errors(path):
            write_problems(path, found)
        self._progress.say(
            f"Left out, of {total:,} {what}, those with problems ({_counts(found)}): "
            f"{str(path)!r} lists them."
        )

    def joined(self, error: InputError) -> InputError:
        """An error that ends the reading, with the problems that were found before it."""
        if not self.found or isinstance(error, BadDataError):
            return error
        lines = [str(error), f"also, {_counts(self.found)}:", *_listed(self.found)]
        return BadDataError("\n".join(lines), self.found)


@contextmanager
def collecting(config: DataConfig | None, progress: Progress) -> Iterator[Problems]:
    """Problems of what is read within the block, which settles them.

    Raises:
        InputError: as within the block; problems found before it are added to its message.
    """
    problems = Problems(config, progress)
    try:
        yield problems
    except InputError as error:
        raise problems.joined(error) from None


def report(
    problems: Sequence[BadRowError], total: int, what: str = "rows", skippable: bool = True
) -> BadDataError:
    """All problems as one error: counts by kind, and the first of them in full."""
    if len(problems) == 1:
        hint = " (data.skip_bad=true leaves it out)" if skippable else ""
        return BadDataError(
            f"{shortened(str(problems[0]), 400 - len(hint))}{hint}", problems, total
        )
    hint = ", or set data.skip_bad=true to leave them out" if skippable else ""
    count = sum(problem.rows for problem in problems)
    first = f"{count:,} problems in {total:,} {what} ({_counts(problems)}): correct them{hint}"
    return BadDataError("\n".join([first, *_listed(problems)]), problems, total)


def write_problems(path: Path, problems: Sequence[BadRowError]) -> None:
    """Write a list of problems as CSV, with their kinds."""
    rows = ((problem.kind, printable(str(problem))) for problem in problems)
    write_csv(path, ("kind", "problem"), rows)


def _counts(problems: Sequence[BadRowError]) -> str:
    kinds: Counter[str] = Counter()
    for problem in problems:
        kinds[problem.kind] += problem.rows
    return ", ".join(f"{kind}: {count:,}" for kind, count in kinds.most_common())


def _listed(problems: Sequence[BadRowError]) -> list[str]:
    lines = [f"  {problem}" for problem in problems[:SHOWN]]
    more = len(problems) - SHOWN
    return [*lines, f"  … and {more:,} more: lors check --out FILE.csv lists all"][
        : len(lines) + (more > 0)
    ]
