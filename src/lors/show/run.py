"""A run from Python as ``lors distill`` does it: with progress, and a report at its end."""

from __future__ import annotations

from pathlib import Path

from lors.config import Config
from lors.data import Pairs
from lors.evaluation.results import Results
from lors.runs import pipeline
from lors.show.report import end_with_report
from lors.system.progress import Progress
from lors.system.showing import showing_progress

__all__ = ["run"]


def run(
    config: Config,
    out: str | Path,
    progress: Progress | bool | None = None,
    references: bool = True,
    data_parallel: bool = False,
    pairs: Pairs | None = None,
    evaluate: bool = True,
    report: bool = True,
) -> Results:
    """Distil a dataset, or select from it, show what the result is worth, and write a report.

    A run that was interrupted continues where it stopped; a finished one is not repeated.

    >>> from lors import load_config
    >>> results = run(load_config("demo"), "runs/demo")  # doctest: +SKIP
    >>> print(results)  # doctest: +SKIP

    Args:
        config: everything.
        out: the run directory.
        progress: True, False, or an object that reports long-running work; default: shown where a
            person looks.
        references: also measure the full data and random pairs of equal storage.
        data_parallel: under torchrun, divide every batch between the ranks, instead of experts and
            trajectories.
        pairs: the real pairs, where they are in memory.
        evaluate: also measure the set, and write its card and its report.
        report: write ``report.html``; False leaves it out.

    Returns:
        What ``results.json`` holds: a row of recalls for the set and for each reference, how long
        making the set took, and the peak memory of its last sitting.

    Raises:
        InputError: bad configuration or data, or a directory that holds another run.
        LorsError: the report could not be written; the results are saved.
    """
    with showing_progress(progress) as shown:
        results = pipeline.run(config, out, shown, references, data_parallel, pairs, evaluate)
        if evaluate and report:
            end_with_report(Path(out), shown)
    return results
