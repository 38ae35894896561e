"""The ``lors`` command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Column, Table

from lors.errors import InputError, LorsError, choose

__all__ = ["app", "main"]

T = TypeVar("T")

app = typer.Typer(
    help="Distil a large set of captioned images into a tiny one that trains a CLIP-style model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()

Source = Annotated[
    str,
    typer.Argument(metavar="CONFIG", help="Name of a preset (see 'lors presets') or YAML file."),
]
METHODS = "random,herding,k-center,mtt-vl,tesla-wbce,lors-wbce"
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings that replace those of CONFIG, e.g. distill.iterations=500.",
        show_default=False,
    ),
]


References = Annotated[
    bool, typer.Option(help="Also measure the full data and random pairs of equal storage.")
]


@app.command()
def distill(
    config: Source,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory. Default: runs/NAME-OF-CONFIG.")
    ] = None,
    references: References = True,
) -> None:
    """Distil a dataset: runs whatever is missing, from data to evaluation, and ends with a table.

    Interrupted? The same command continues where it stopped.
    """
    _run(config, list(overrides or ()), out or Path("runs") / Path(config).stem, references)


@app.command()
def select(
    method: Annotated[
        str, typer.Argument(help="random, herding, k-center, forgetting or clip-score.")
    ],
    config: Source,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory. Default: runs/NAME-OF-CONFIG-METHOD.")
    ] = None,
    references: References = True,
) -> None:
    """Choose real pairs instead of learning synthetic ones: a set like any other.

    Its learning rate and loss are tuned on the validation split; selection.csv lists the pairs.
    """
    out = out or Path("runs") / f"{Path(config).stem}-{method}"
    _run(config, [*(overrides or ()), f"selection.kind={method}"], out, references)


def _run(config: str, overrides: list[str], out: Path, references: bool) -> None:
    from lors.config import load_config
    from lors.pipeline import SET, run

    with Display() as display:
        results = run(load_config(config, overrides), out, display, references)
    console.print(results_table(results["rows"]))
    console.print(f"The set is {escape(str(out / SET))}")


@app.command()
def compare(
    config: Annotated[
        str | None,
        typer.Argument(metavar="[CONFIG]", help="Preset or YAML file; none with --table."),
    ] = None,
    overrides: Overrides = None,
    table: Annotated[
        str | None, typer.Option(help="A table of the paper; --table list shows them.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Of the table: full as in the paper, or small for a laptop.")
    ] = "full",
    methods: Annotated[
        str | None,
        typer.Option(help=f"Comma-separated; --methods list shows them. Default: {METHODS}."),
    ] = None,
    budgets: Annotated[
        str | None, typer.Option(help="Storage in pairs, comma-separated. Default: the CONFIG's.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every cell.")] = 3,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time. Default: as cores and memory allow.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder. Default: runs/compare-NAME.")] = None,
) -> None:
    """Compare methods on equal storage, on your data or as a table of the paper.

    Experts and features are made once and shared. Interrupted? The same command continues.
    """
    from lors import compare as comparison

    if table == "list" or methods == "list":
        _list_comparisons(table == "list")
        return
    changes = list(overrides or ())
    if table is not None:
        if config is not None:  # with --table there is no CONFIG: it was the first override
            changes.insert(0, config)
        if methods or budgets or (config is not None and "=" not in config):
            raise InputError("a table has its own CONFIG, methods and budgets: give only overrides")
        chosen, name = comparison.load_table(table, scale), f"{table}-{scale}"
    elif config is None:
        raise InputError("what to compare? Give a CONFIG, or a table of the paper with --table")
    else:
        sizes = [_whole_number(size) for size in (budgets or "").split(",") if size]
        names = [method.strip() for method in (methods or METHODS).split(",")]
        chosen, name = comparison.own_table(config, names, sizes), Path(config).stem
    out = out or Path("runs") / f"compare-{name}"
    with Display() as display:
        records = comparison.compare(chosen, out, range(seeds), changes, jobs, display)
    typer.echo((out / "table.md").read_text("utf-8"))
    failed = [record for record in records if record.failed]
    for record in failed:
        console.print(escape(f"{record.row}, {record.column}, seed {record.seed}: {record.failed}"))
    console.print(f"All results are in {escape(str(out))}: results.csv, results.json, table.tex")
    if failed:
        raise LorsError(f"{len(failed)} of {len(records)} runs have no result")


def _whole_number(text: str) -> int:
    if not text.strip().isdigit():
        raise InputError(f"--budgets takes whole numbers such as 100,200, not {text!r}")
    return int(text)


def _list_comparisons(of_tables: bool) -> None:
    from lors import compare as comparison

    listed = Table("table", "what it shows") if of_tables else Table("method", "in tables")
    if of_tables:
        for name in comparison.tables():
            listed.add_row(name, comparison.load_table(name).title)
    else:
        for name, method in comparison.methods().items():
            listed.add_row(name, method.label)
    console.print(listed)


@app.command()
def experts(config: Source, overrides: Overrides = None) -> None:
    """Train the experts of a configuration that are not there yet."""
    from lors.config import load_config
    from lors.workbench import Workbench

    with Display() as display:
        store = Workbench(load_config(config, overrides or ()), display).experts()
    console.print(f"The experts are in {escape(str(store.folder))}")


@app.command()
def evaluate(
    distilled: Annotated[
        Path, typer.Argument(metavar="SET", help="A distilled set (.safetensors).")
    ],
    overrides: Overrides = None,
    image_trunk: Annotated[
        str | None, typer.Option(help="Evaluate with this image trunk instead; pixel sets only.")
    ] = None,
    image_weights: Annotated[
        str | None, typer.Option(help="Weights of that trunk: hub, or a file. Default: none.")
    ] = None,
) -> None:
    """Train fresh networks on a distilled set and measure their recall on the test split.

    Data, encoders and protocol are those saved in the set unless overridden, e.g.
    data.root=/elsewhere evaluate.seeds=10.
    """
    from lors.pipeline import evaluate_set

    changes = list(overrides or ())
    if image_trunk is not None:
        changes += [f"encoder.image={image_trunk}", "encoder.image_weights=none"]
    if image_weights is not None:
        changes.append(f"encoder.image_weights={image_weights}")
    with Display() as display:
        row = evaluate_set(distilled, changes, display)
    console.print(results_table({distilled.name: row}))


@app.command()
def plan(config: Source, overrides: Overrides = None) -> None:
    """Print parameters, storage, memory and time of a configuration before running it.

    From a short measurement on this device; neither data nor pretrained weights are needed.
    """
    from lors.config import load_config
    from lors.plan import plan as measure

    table = Table("", config)
    with console.status("measuring"):
        facts = measure(load_config(config, overrides or ()))
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="Any file or run directory that lors wrote.")],
) -> None:
    """Describe an artefact: a distilled set, an expert, a checkpoint, a run directory."""
    from lors.info import describe

    table = Table("", escape(str(path)))
    for name, value in describe(path).items():
        table.add_row(escape(name), escape(str(value)))
    console.print(table)


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset as YAML.")] = None,
) -> None:
    """List the configurations that come with lors, or print one."""
    from lors.config import Expected, load_config
    from lors.config import presets as known

    if name is not None:
        typer.echo(choose(known(), name, "preset"), nl=False)
        return
    table = Table(Column("preset", no_wrap=True), "recall", "full data", "needs", "what it does")
    for preset in known():
        config = load_config(preset)
        expected = config.expected or Expected()
        if not preset.endswith("-base"):
            recalls = ("" if r is None else f"{r}" for r in (expected.recall, expected.full_data))
            needs = ", ".join(filter(None, (expected.time, expected.memory)))
            table.add_row(preset, *recalls, needs, config.description)
    console.print(table)
    console.print(
        "Recalls are means of IR and TR@1/5/10 as published, or as measured for our own presets. "
        "For time and memory on this device: [bold]lors plan PRESET[/]"
    )


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

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

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


def main() -> None:
    """Run the command line; a user's mistake is a sentence and exit code 2, not a traceback."""
    try:
        app()
    except LorsError as error:
        text = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted. The same command continues where it stopped.")
        sys.exit(130)
