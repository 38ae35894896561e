"""Comparing methods on a caller's own data, in one call."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from lors.comparison.controls import with_controls
from lors.comparison.remaining import remaining
from lors.comparison.results import Filled, Record, Reference, chance_line, lines, reference_note
from lors.comparison.run import fill_table
from lors.comparison.table import Table, Variant, method_variant
from lors.comparison.verdict import verdict
from lors.config.keywords import by_dotted_name
from lors.config.methods import Method, add_method, find_method
from lors.data.anything import as_pairs
from lors.encoders.own import Encoder
from lors.evaluation.frames import data_frame, html_table
from lors.evaluation.recall import METRICS
from lors.files.artifacts import write_text
from lors.losses import Loss
from lors.runs.distill import Network, call_folder, configured, skips_bad, whole_number
from lors.system.errors import InputError
from lors.system.progress import Progress
from lors.system.showing import showing_progress

__all__ = ["Comparison", "compare"]

BASE = "base.yaml"


@dataclass(frozen=True, repr=False)
class Comparison:
    """What methods reach on one budget: mean recall, over seeds.

    Prints as a table, shows as one in a notebook, and converts to pandas.

    >>> found = compare(images, texts, methods=["random", "herding"], pairs=[6, 9], seeds=1,
    ...                 progress=False, **quick)
    >>> len(found.records), found.mean("herding", pairs=9) < found.full_data[0].mean
    (4, True)
    >>> found.to_pandas()[["pairs", "method", "seed"]]
       pairs   method  seed
    0      6   Random     0
    1      6  Herding     0
    2      9   Random     0
    3      9  Herding     0

    Args:
        filled: the table with its results.
    """

    filled: Filled

    @property
    def records(self) -> Sequence[Record]:
        """One for each method, budget and seed."""
        return self.filled.records

    @property
    def full_data(self) -> Sequence[Reference]:
        """What training on all pairs reaches."""
        return self.filled.references

    def mean(self, method: str, pairs: int | None = None) -> float:
        """The mean recall of a method over all seeds.

        Args:
            method: its name or label.
            pairs: the budget; may be left out where there is one.

        Raises:
            InputError: it was not compared, or every run of it failed.
        """
        label = find_method(method).label if method not in self._labels() else method
        found = [
            record.mean
            for record in self.records
            if record.column == label
            and not self._controls[record.row]
            and pairs in (None, _budget(record.row))
            and record.mean is not None
        ]
        if not found:
            raise InputError(f"there is no result of {method!r}: it has {self._labels()}")
        return sum(found) / len(found)

    def _labels(self) -> list[str]:
        return [column.label for column in self.filled.table.columns]

    @property
    def _controls(self) -> dict[str, str]:
        """What a set has to do without in each row; empty: nothing."""
        return {row.label: row.control or "" for row in self.filled.table.rows}

    @property
    def remaining(self) -> list[list[str]]:
        """What remains of every method's gain under the controls, as text, the head first."""
        return remaining(self.filled.table, self.records, self.full_data)

    def _grid(self) -> list[list[str]]:
        table = self.filled.table
        shown = [*lines(table, self.records, "mean"), *chance_line(table, self.full_data)]
        return [[line.label, *(e.text("**", "**") for e in line.entries)] for line in shown]

    def _notes(self) -> list[str]:
        table = self.filled.table
        notes = [reference_note(reference, table) for reference in self.full_data]
        failed = [
            f"{r.row}, {r.column}, seed {r.seed}: {r.failed}" for r in self.records if r.failed
        ]
        return list(filter(None, [*notes, verdict(self.filled), *failed]))

    def __repr__(self) -> str:
        table = RichTable("mean recall", *self._labels())
        for row in self._grid():
            table.add_row(*row)
        console = Console(file=io.StringIO(), width=100, force_terminal=False)
        console.print(table)
        if left := self.remaining:
            below = RichTable(*left[0])
            for line in left[1:]:
                below.add_row(*line)
            console.print(below)
        for note in self._notes():
            console.print(note, soft_wrap=True, markup=False)
        shown = console.file
        assert isinstance(shown, io.StringIO)
        return shown.getvalue().rstrip()

    def _repr_html_(self) -> str:
        lines = [["mean recall", *self._labels()], *self._grid()]
        page = html_table(lines, self.filled.table.title, self._notes())
        left = self.remaining
        return page + (html_table(left, "What remains under controls") if left else "")

    def to_pandas(self) -> Any:
        """A data frame with a line for each method, budget and seed."""
        return data_frame(
            [
                {"pairs": _budget(r.row), "method": r.column, "seed": r.seed}
                | ({"control": self._controls[r.row]} if self.remaining else {})
                | {name: asdict(r)[name] for name in ("mean", *METRICS, "storage", "seconds")}
                for r in self.records
            ]
        )


def compare(
    data: Any,
    texts: Any = None,
    *,
    methods: str | Method | Sequence[str | Method] = ("hindsight", "lors", "random"),
    pairs: int | Sequence[int] = 100,
    seeds: int = 3,
    controls: bool = False,
    encoder: Encoder | None = None,
    model: Network | None = None,
    loss: str | Loss | None = None,
    owner: Any = None,
    val: Any = None,
    test: Any = None,
    out: str | Path | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Comparison:
    """Run methods on the same data and storage, and see which wins.

    >>> import lors
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(200, 4))
    >>> images, texts = (shared @ rng.normal(size=(4, size)) for size in (12, 10))
    >>> quick = {"experts": {"count": 1, "epochs": 4}, "evaluate": {"epochs": 9, "seeds": 1}}
    >>> found = lors.compare(images, texts, methods=["random", "k-center"], pairs=9, seeds=1,
    ...                      tried_rates=[0.3], progress=False, **quick)
    >>> found.mean("random") < found.full_data[0].mean  # print(found) shows a table
    True

    Args:
        data: as of ``distill``.
        texts: as of ``distill``.
        methods: names that ``lors compare --methods list`` shows, matchers of your own by the name
            they are registered with, or ``Method`` objects.
        pairs: a budget, or several.
        seeds: how many runs of each; experts are shared by all.
        controls: also measure what soft labels and teachers give away, and what ``remaining`` says.
        encoder: as of ``distill``.
        model: as of ``distill``.
        loss: for methods that leave it open.
        owner: as of ``distill``.
        val: as of ``distill``.
        test: as of ``distill``.
        out: a folder, if the comparison should be kept and continued when interrupted.
        progress: True, False, or an object that reports long-running work.
        options: any setting, for all methods that have it.

    Raises:
        InputError: bad input, in one sentence, before any work starts.
    """
    with showing_progress(progress) as shown, call_folder(out) as folder:
        budgets = _budgets(pairs)
        seeds = whole_number(seeds, "seeds is how many runs of each method are made")
        chosen = _chosen([methods] if isinstance(methods, (str, Method)) else methods)
        if not chosen or not budgets:
            raise InputError("give one or more methods, and one or more numbers of pairs")
        real = as_pairs(
            data,
            texts,
            owner=owner,
            val=val,
            test=test,
            progress=shown,
            skip_bad=skips_bad(options),
        )
        plain = configured(
            real, pairs=min(budgets), method="lors", encoder=encoder, model=model, loss=loss
        )
        write_text(folder / BASE, plain.yaml())
        table = _table(folder / BASE, chosen, budgets)
        table = with_controls(table) if controls else table
        settings = _for_all(options, chosen)
        out = folder / "comparison"
        filled = fill_table(table, out, range(seeds), settings, 0, shown, pairs=real)
    return Comparison(filled)


def _budgets(pairs: Any) -> list[int]:
    many = pairs if hasattr(pairs, "__iter__") and not isinstance(pairs, str) else [pairs]
    what = "pairs is how many pairs a set may hold"
    return list(dict.fromkeys(whole_number(each, what) for each in many))


def _chosen(methods: Sequence[str | Method]) -> list[Method]:
    for method in methods:
        if not isinstance(method, (str, Method)):
            raise InputError(
                f"a method is a name or a lors.Method, not a {type(method).__name__}: give the "
                "name that a matcher of your own is registered with"
            )
    return [add_method(m) if isinstance(m, Method) else find_method(m) for m in methods]


def _table(base: Path, methods: Sequence[Method], budgets: Sequence[int]) -> Table:
    rows = (
        Variant(label=f"{budget} pairs", preset=str(base), set={"distill.budget": budget})
        for budget in budgets
    )
    columns = (method_variant(method.name) for method in methods)
    return Table(title="Methods on one budget", rows=tuple(rows), columns=tuple(columns))


def _for_all(options: dict[str, Any], chosen: Sequence[Method]) -> list[str]:
    """Keywords as overrides; an option of a matcher counts for the methods that have it."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        problems = []
        for kind in dict.fromkeys(method.matcher for method in chosen):
            try:
                found |= by_dotted_name({name: value}, kind)
                break
            except InputError as error:
                problems.append(error)
        else:
            raise problems[0]
    return [f"{name}={json.dumps(value)}" for name, value in found.items()]


def _budget(row: str) -> int:
    return int(row.split()[0])
