"""A run or a set opened for looking at: what it began with, what it learned, how it went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lors.config import load_config
from lors.evaluation.results import Results
from lors.runs.folders import LOG, SET, saved_results
from lors.runs.metrics import read_metrics
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["Run"]


class Run:
    """What a run left behind, and the data behind it.

    >>> import lors
    >>> small = lors.distill(images, texts, pairs=9, out="mine", progress=False, **quick)
    >>> run = Run("mine")
    >>> len(run.distilled) == len(small), run.metrics[-1]["iteration"], run.config.distill.budget
    (True, 2, 9)

    Reading the results needs nothing but the files; whatever compares with real pairs also loads
    the data, from where the run found it unless an override says otherwise.

    Args:
        path: a run directory, or a distilled set alone.
        overrides: changes to the saved configuration, e.g. ``data.root=/elsewhere``.
        progress: reports long-running work.

    Raises:
        InputError: the path holds no set, or a damaged one.
    """

    def __init__(
        self, path: str | Path, overrides: Sequence[str] = (), progress: Progress | None = None
    ) -> None:
        path = Path(path)
        self.set_path = path / SET if path.is_dir() else path
        self.folder = self.set_path.parent
        if path.is_dir() and not self.set_path.is_file():
            raise InputError(
                f"{str(path)!r} holds no {SET}: give the folder of a run that has ended"
            )
        self.distilled = DistilledSet.load(self.set_path)
        saved = self.distilled.config.model_dump(mode="json")
        self.config = load_config(saved, overrides)
        self.progress = progress

    def __repr__(self) -> str:
        measured = ", ".join(f"{name} {row.mean:.1f}" for name, row in self.results.rows.items())
        return f"Run({str(self.folder)!r}: {measured or 'nothing measured'}; {self.distilled!r})"

    @cached_property
    def results(self) -> Results:
        """The content of ``results.json``; its ``rows`` are empty for a set alone."""
        return saved_results(self.folder)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The records of ``metrics.jsonl`` that are whole; none for a selection."""
        path = self.folder / LOG
        found = read_metrics(path)
        if found.damaged and self.progress is not None:
            self.progress.say(found.warning(path))
        return found.records

    @cached_property
    def setting(self) -> Setting:
        """The real pairs and encoders, with the text trunk and standardisation of the set."""
        return setting_of(self.config, self.progress, like=self.distilled)

    @cached_property
    def start(self) -> SyntheticPairs:
        """The pairs before distillation; of a selection or an imported set, the set itself."""
        if self.config.selection.kind is not None or self.distilled.imported:
            return self.distilled.pairs
        return start_pairs(self.setting)
