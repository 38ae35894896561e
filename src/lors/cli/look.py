"""Commands that look into runs and datasets: analyze, figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from lors.cli.app import Changes, Overrides, Source, app, console
from lors.cli.display import LOADING, PREPARING, Display
from lors.system.errors import InputError

if TYPE_CHECKING:
    from lors.show.analysis.rows import Row

analyze = typer.Typer(help="Analyses of the paper, on any run or dataset.", no_args_is_help=True)
app.add_typer(analyze, name="analyze")

RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory, or a distilled set.")
]
TableFile = Annotated[
    Path | None, typer.Option("--out", help="Also write the table here: a .csv or .json file.")
]


@analyze.command()
def variance(
    config: Source,
    overrides: Overrides = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="open_clip:ARCHITECTURE/TAG, or a timm model as NAME@hub, NAME@FILE or NAME "
            "without weights; may be repeated. Default: the image trunk of CONFIG."
        ),
    ] = None,
    labelled: Annotated[
        list[str] | None,
        typer.Option(help="Also a dataset with classes, e.g. cifar10; may be repeated."),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder below which those lie.")] = Path(),
    out: TableFile = None,
) -> None:
    """Measure how varied images are. In total, or within the classes of a labelled dataset.

    With --out, rows of other datasets and encoders that the file already holds are kept.
    """
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.show.analysis.variance import dataset_variance, merged

        display.doing(PREPARING)
        rows = dataset_variance(settings, encoder or (), labelled or (), root, display)
    _show(rows, merged(rows, out) if out else rows, out)


@analyze.command()
def false_negatives(
    config: Source,
    overrides: Overrides = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs, each of other pairs.")] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Folder. Default: runs/NAME-OF-CONFIG-false-negatives.")
    ] = None,
) -> None:
    """Plant false negatives, distil, and see if S finds them.

    Half as many real pairs as synthetic ones are drawn and taken twice. The similarity is a full
    matrix, as in the paper, unless similarity.kind=lowrank is given.
    """
    out = out or Path("runs") / f"{Path(config).stem}-false-negatives"
    with Display(LOADING) as display:
        from lors.show.analysis.false_negatives import find_false_negatives, summary, toy

        display.doing(PREPARING)
        settings = toy(config, overrides or ())
        rows = find_false_negatives(settings, out, range(seeds), display)
    _show([*rows, summary(rows)], rows, out / "auc.csv")
    console.print(f"The histogram: lors figure histogram {escape(str(out / 'seed-0'))}")


@analyze.command()
def spectrum(run: RunPath, out: TableFile = None) -> None:
    """Show the spectrum of the learned similarity. Beside it, that of a Gaussian matrix."""
    with Display(LOADING):
        from lors.runs.opened import Run
        from lors.show.analysis.spectrum import spectra, summary

        rows = spectra(Run(run).distilled.pairs.similarity.matrix().float().cpu().numpy())
    _show(summary(rows), rows, out)


@analyze.command()
def neighbours(
    run: RunPath,
    overrides: Changes = None,
    count: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each.")] = 3,
    out: TableFile = None,
) -> None:
    """List the real captions and images nearest to a set."""
    with Display(LOADING) as display:
        from lors.runs.opened import Run
        from lors.show.analysis.neighbours import neighbour_rows

        display.doing(PREPARING)
        rows = neighbour_rows(Run(run, overrides or (), display), count)
    nearest = [row for row in rows if row["place"] == 1]
    _show([{k: v for k, v in row.items() if k != "place"} for row in nearest], rows, out)


@analyze.command()
def efficiency(
    config: Source,
    overrides: Overrides = None,
    iterations: Annotated[int, typer.Option(min=2, help="How many of each to time.")] = 20,
    out: TableFile = None,
) -> None:
    """Measure time and memory of an iteration. With a learned similarity and without."""
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.evaluation.statistic import plus_minus
        from lors.show.analysis.efficiency import efficiency as measure

        display.doing(PREPARING)
        rows = measure(settings, iterations, display)
    _show(rows, rows, out)
    learned = rows[-1]
    change = plus_minus(1000 * learned["more_seconds"], 1000 * learned["error"], "+.2f")
    console.print(
        f"Learning the similarity changes an iteration by {change} ms (mean ± standard error).",
        highlight=False,
    )


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="The figure; 'lors figure list' names them all.")],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run directory or set; for variance, its table."),
    ] = None,
    overrides: Changes = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder. Default: figures, beside what it shows.")
    ] = None,
) -> None:
    """Draw a figure of the paper from a run. As PNG and SVG, with its data as CSV."""
    if name == "list":
        from lors.show.figures import FIGURES

        table = Table(Column("figure", no_wrap=True), "what it shows")
        for each, kind in FIGURES.items():
            table.add_row(each, kind.about)
        console.print(table)
        return
    if run is None:
        what = "the table of 'lors analyze variance --out'" if name == "variance" else "a run"
        raise InputError(f"what to show? Give {what}: lors figure {name} PATH")
    folder = out or (run if run.is_dir() else run.parent) / "figures"
    with Display(LOADING) as display:
        from lors.show.figures import make_figure

        display.doing(PREPARING)
        paths = make_figure(name, run, folder, overrides or (), display)
    for path in paths:
        console.print(escape(str(path)), highlight=False, soft_wrap=True)


def _show(shown: Sequence[Row], rows: Sequence[Row], out: Path | None) -> None:
    """Print some rows, and write all of them."""
    from lors.show.analysis.rows import write_rows

    table = Table(*(name.replace("_", " ") for name in shown[0]))
    for row in shown:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)
    if out is not None:
        write_rows(out, rows)
        console.print(f"Written to {escape(str(out))}")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
