"""Writing a report: which kind it is, where it goes, and how a run ends with one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from lors.files import artifacts
from lors.runs.folders import RESULTS
from lors.runs.opened import Run
from lors.show.report.comparison import comparison_content, is_comparison
from lors.show.report.map import PROJECTIONS
from lors.show.report.page import render
from lors.show.report.run import run_content
from lors.system import ranks
from lors.system.errors import InputError, LorsError, choose
from lors.system.progress import Progress

__all__ = ["REPORT", "end_with_report", "write_report"]

REPORT = "report.html"


def write_report(
    path: str | Path,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
    projection: str = "pca",
    thorough: bool = False,
) -> Path:
    """Write the page of a run, a set or a comparison: one HTML file that needs nothing else.

    >>> import lors
    >>> config = lors.load_config("tiny", ["distill.iterations=2", "evaluate.seeds=1"])
    >>> results = lors.run(config, "runs/tiny", references=False)
    >>> lors.write_report("runs/tiny").name
    'report.html'

    Args:
        path: a run directory, a distilled set alone, or the folder of a comparison.
        overrides: changes to the saved configuration, e.g. ``data.root=/elsewhere``.
        out: the file; default: ``report.html`` in the folder, or beside a set with its name.
        progress: reports long-running work.
        projection: what the map of a run is made by: ``pca``, or ``umap``, which needs umap-learn.
        thorough: whether to train a network on the set for the page however long that takes;
            otherwise only where it takes less than a minute.

    Returns:
        The file.

    Raises:
        InputError: the path holds nothing to report on, or something damaged.
        LorsError: the file cannot be written.
    """
    choose(PROJECTIONS, projection, "projection")
    path = Path(path)
    if is_comparison(path):
        if overrides:
            raise InputError("a comparison has no settings: give overrides for one of its runs")
        content = comparison_content(path)
    else:
        content = run_content(Run(path, overrides, progress), path, projection, thorough)
    page = Path(out) if out else path / REPORT if path.is_dir() else path.with_suffix(".html")
    try:
        artifacts.write_text(page, render(content["title"], content))
    except OSError as error:
        raise LorsError(f"cannot write the report {str(page)!r}: {error}") from None
    return page


def end_with_report(folder: Path, progress: Progress) -> Path | None:
    """The report of a run or comparison that has just ended; written unless it is there already.

    Rank 0 writes it, when the others may be gone.

    Returns:
        The file; None on other ranks.

    Raises:
        LorsError: it could not be written, for whatever reason. The message says that the results
            are whole and which command writes the report later.
    """
    if ranks.rank() > 0:
        return None
    page = folder / REPORT
    try:
        if page.is_file() and page.stat().st_mtime >= (folder / RESULTS).stat().st_mtime:
            return page
        with ranks.alone():
            return write_report(folder, progress=progress)
    except Exception as error:
        reason = str(error) if isinstance(error, LorsError) else f"{type(error).__name__}: {error}"
        raise LorsError(
            f"all results are saved, but the report is not written ({reason}): put this right, and "
            f"'lors report {shlex.quote(str(folder))}' writes it"
        ) from error
