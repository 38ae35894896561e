"""What is wrong with a dataset: all of it in one report, instead of the first mistake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.files.artifacts import home
from lors.files.cache import cache_errors, fingerprint
from lors.files.tables import write_csv
from lors.system.errors import InputError, printable, shortened
from lors.system.progress import Progress

__all__ = [
    "IN_MEMORY",
    "BadDataError",
    "Problems",
    "Skipped",
    "collecting",
    "keeping_skipped",
    "list_skipped",
    "report",
    "skip_rows",
    "write_problems",
]

SHOWN = 20
"""Problems that a report lists; the others are counted."""

LIST_ALL = ": lors check --out FILE.csv lists all"

IN_FILES, IN_MEMORY = "data.skip_bad=true", "skip_bad=True"
"""How bad rows are left out, as a user writes it."""


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


@dataclass(frozen=True)
class Skipped:
    """Bad rows that were left out.

    Args:
        problems: what is wrong with them.
        total: how many rows there are with them.
        what: the rows are.
        title: of the dataset.
    """

    problems: tuple[BadRowError, ...]
    total: int
    what: str
    title: str


_KEPT: ContextVar[list[Skipped] | None] = ContextVar("skipped", default=None)


@contextmanager
def keeping_skipped() -> Iterator[list[Skipped]]:
    """What is left out within the block, for the caller to list; nothing is written or said."""
    kept: list[Skipped] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def skip_rows(skipped: Skipped, progress: Progress) -> None:
    """Say what was left out and list it below ``LORS_HOME``, or hand it to ``keeping_skipped``."""
    kept = _KEPT.get()
    if kept is None:
        list_skipped([skipped], None, progress)
    else:
        kept.append(skipped)


def list_skipped(found: Sequence[Skipped], path: Path | None, progress: Progress) -> None:
    """Write what was left out to a CSV file, and say how many rows of which kind.

    Args:
        found: what was left out.
        path: the file; default: one below ``LORS_HOME/skipped``.
        progress: says it.
    """
    if not found:
        return
    problems = [problem for each in found for problem in each.problems]
    if path is None:
        name = re.sub(r"[^\w.-]+", "-", found[0].title)[:100]
        mark = fingerprint(*(problem.kind + str(problem).replace("\0", "") for problem in problems))
        path = home() / "skipped" / f"{name}-{mark}.csv"
        with cache_errors(path):
            write_problems(path, problems)
    else:
        write_problems(path, problems)
    counts = "; ".join(
        f"of {each.total:,} {each.what}, those with problems ({_counts(each.problems)})"
        for each in found
    )
    progress.say(f"Left out, {counts}: {str(path)!r} lists them.")


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
        config: says whether bad rows are left out; None if they never are.
        progress: is told what was left out.
        how: bad rows are left out, as a user writes it.
    """

    def __init__(self, config: DataConfig | None, progress: Progress, how: str = IN_FILES) -> None:
        self.skip = config is not None and config.skip_bad
        self._config, self._progress, self._how = config, progress, how
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
            raise report(found, total, what, self._how if self._config is not None else "")
        assert self._config is not None
        skip_rows(Skipped(tuple(found), total, what, self._config.title()), self._progress)

    def joined(self, error: InputError) -> InputError:
        """An error that ends the reading, with the problems that were found before it."""
        if not self.found or isinstance(error, BadDataError):
            return error
        lines = [str(error), f"also, {_counts(self.found)}:", *_listed(self.found)]
        return BadDataError("\n".join(lines), self.found)


@contextmanager
def collecting(
    config: DataConfig | None, progress: Progress, how: str = IN_FILES
) -> Iterator[Problems]:
    """Problems of what is read within the block, which settles them.

    Raises:
        InputError: as within the block; problems found before it are added to its message.
    """
    problems = Problems(config, progress, how)
    try:
        yield problems
    except InputError as error:
        raise problems.joined(error) from None


def report(
    problems: Sequence[BadRowError], total: int, what: str = "rows", how: str = IN_FILES
) -> BadDataError:
    """All problems as one error: counts by kind, and the first of them in full.

    Args:
        problems: one or more.
        total: how many rows there are.
        what: they are.
        how: to leave them out, as a user writes it; empty if they cannot be left out.
    """
    if len(problems) == 1:
        hint = f" ({how} leaves it out)" if how else ""
        return BadDataError(
            f"{shortened(str(problems[0]), 400 - len(hint))}{hint}", problems, total
        )
    give = "give" if how == IN_MEMORY else "set"
    hint = f", or {give} {how} to leave them out" if how else ""
    count = sum(problem.rows for problem in problems)
    first = f"{count:,} problems in {total:,} {what} ({_counts(problems)}): correct them{hint}"
    lines = _listed(problems, "" if how == IN_MEMORY else LIST_ALL)
    return BadDataError("\n".join([first, *lines]), problems, total)


def write_problems(path: Path, problems: Sequence[BadRowError]) -> None:
    """Write a list of problems as CSV, with their kinds."""
    rows = ((problem.kind, printable(str(problem))) for problem in problems)
    write_csv(path, ("kind", "problem"), rows)


def _counts(problems: Sequence[BadRowError]) -> str:
    kinds: Counter[str] = Counter()
    for problem in problems:
        kinds[problem.kind] += problem.rows
    return ", ".join(f"{kind}: {count:,}" for kind, count in kinds.most_common())


def _listed(problems: Sequence[BadRowError], hint: str = LIST_ALL) -> list[str]:
    lines = [f"  {problem}" for problem in problems[:SHOWN]]
    more = len(problems) - SHOWN
    return [*lines, f"  … and {more:,} more{hint}"] if more > 0 else lines
