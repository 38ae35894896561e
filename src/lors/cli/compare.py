"""The command that compares methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from lors.cli.app import Overrides, app, console
from lors.cli.display import LOADING, PREPARING, Display
from lors.system.errors import InputError, LorsError

if TYPE_CHECKING:
    from lors.comparison.render import Line
    from lors.comparison.results import Filled, Record
    from lors.comparison.table import Table as Comparison

METHODS = "random,herding,k-center,mtt-vl,tesla-wbce,lors-wbce"


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
        str, typer.Option(help="Size of the table: full as in the paper, or small for a laptop.")
    ] = "full",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated; --methods list shows them. Default: all of the table, or "
            f"{METHODS}."
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Storage in pairs, comma-separated. Default: all of the table, or the CONFIG's."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every cell.")] = 3,
    first_seed: Annotated[
        int,
        typer.Option(min=0, help="The first seed; to add seeds to a comparison begun elsewhere."),
    ] = 0,
    image_trunk: Annotated[
        str | None,
        typer.Option(help="Evaluate every set with this image trunk, too; pixel sets only."),
    ] = None,
    image_weights: Annotated[
        str | None, typer.Option(help="Weights of that trunk: hub, or a file. Default: none.")
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls",
            help="Also measure what soft labels and teachers give away, and what remains of every "
            "method's gain without them.",
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time. Default: as cores and memory allow.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder. Default: runs/compare-NAME.")] = None,
) -> None:
    """Compare methods on equal storage. On your data, or as a table of the paper.

    Experts and features are made once and shared. Interrupted? The same command continues.
    """
    if table == "list":
        _list_tables()
        return
    if methods == "list":
        _list_methods()
        return
    from lors import comparison

    changes = list(overrides or ())
    if table is not None and config is not None:
        changes.insert(0, config)  # with --table there is no CONFIG: it was the first override
    chosen, name = _chosen(config, table, scale, methods, budgets)
    if first_seed:
        name += f"-from-seed-{first_seed}"
    if image_trunk is not None:
        chosen = comparison.transferred(chosen, image_trunk, image_weights)
    elif image_weights is not None:
        raise InputError("--image-weights belongs to --image-trunk: give both")
    if controls:
        chosen = comparison.with_controls(chosen)
    chosen.cells([first_seed], changes)  # a mistake shows before PyTorch is loaded
    out = out or Path("runs") / f"compare-{name}"
    with Display(LOADING) as display:
        from lors.comparison.run import fill_table
        from lors.show.report import end_with_report
        from lors.system import ranks

        display.doing(PREPARING)
        every = range(first_seed, first_seed + seeds)
        filled = fill_table(chosen, out, every, changes, jobs, display)
        if ranks.rank() > 0:
            return
    _print_tables(filled)
    problems = _failures(filled.records)
    where = f"All results are in {escape(str(out))}: table.md, table.tex, results.csv"
    console.print(where, soft_wrap=True)
    with Display("writing the report") as display:
        try:
            page = end_with_report(out, display)
            console.print(f"The report is {escape(str(page))}", soft_wrap=True)
        except LorsError as error:
            problems.append(str(error))
    if problems:
        raise LorsError("; ".join(problems))


def _chosen(
    config: str | None, table: str | None, scale: str, methods: str | None, budgets: str | None
) -> tuple[Comparison, str]:
    """What to compare, and a name for it."""
    from lors import comparison

    sizes = _sizes(budgets)
    if table is None:
        if config is None:
            raise InputError("what to compare? Give a CONFIG, or a table of the paper with --table")
        return comparison.own_table(config, _names(methods or METHODS), sizes), Path(config).stem
    if config is not None and "=" not in config:
        raise InputError("a table has its own CONFIG: give only overrides")
    chosen = comparison.narrowed(comparison.load_table(table, scale), _names(methods), sizes)
    return chosen, "-".join([table, scale, *_names(methods), *map(str, sizes)])


def _print_tables(filled: Filled) -> None:
    """The mean recalls with those of chance, and the time; methods are lines, as they are many."""
    from lors.comparison.remaining import remaining
    from lors.comparison.results import chance_line, lines, reference_note
    from lors.comparison.verdict import verdict

    table, records, references = filled.table, filled.records, filled.references
    if table.measure == "seconds":
        _print_lines(table, "Seconds per iteration", lines(table, records, "seconds_per_iteration"))
    else:
        mean = [*lines(table, records, "mean"), *chance_line(table, references)]
        _print_lines(table, "Mean recall on the test split (%)", mean)
        if any(record.seconds for record in records):
            _print_lines(table, "Seconds to distil", lines(table, records, "seconds"))
    if left := remaining(table, records, references):
        _print_text("What remains under controls", left)
    for reference in references:
        console.print(reference_note(reference, table), markup=False, highlight=False)
    if sentence := verdict(filled):
        console.print(sentence, style="bold", markup=False, highlight=False)


def _print_lines(table: Comparison, title: str, found: Sequence[Line]) -> None:
    grid = [["", *(column.label for column in table.columns)]]
    grid += [[line.label, *(e.text("[bold]", "[/]") for e in line.entries)] for line in found]
    if table.best_in == "row":
        grid = [list(line) for line in zip(*grid, strict=True)]
    _print_text(title, [[escape(line[0]), *line[1:]] for line in grid])


def _print_text(title: str, grid: Sequence[Sequence[str]]) -> None:
    shown = Table(title=title)
    for place, head in enumerate(grid[0]):
        shown.add_column(head, justify="right" if place else "left")
    for line in grid[1:]:
        shown.add_row(*line)
    console.print(shown, highlight=False)


def _failures(records: Sequence[Record]) -> list[str]:
    """Print which runs have no result, and say how many."""
    failed = [record for record in records if record.failed]
    for record in failed:
        line = f"{record.row}, {record.column}, seed {record.seed}: {record.failed}"
        console.print(escape(line), soft_wrap=True)
    return [f"{len(failed)} of {len(records)} runs have no result"] if failed else []


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _sizes(text: str | None) -> list[int]:
    return [_whole_number(size) for size in (text or "").split(",") if size]


def _whole_number(text: str) -> int:
    if not text.strip().isdigit():
        raise InputError(f"--budgets takes whole numbers such as 100,200, not {text!r}")
    return int(text)


def _list_tables() -> None:
    from lors import comparison

    listed = Table("table", "what it shows", "--scale")
    for name, title in comparison.titles().items():
        listed.add_row(name, title, ", ".join(comparison.scales(name)))
    console.print(listed)


def _list_methods() -> None:
    from lors.config.methods import methods, own_methods

    for name, method in {**methods(), **own_methods()}.items():
        console.print(f"[bold]{name}[/], in tables {escape(method.label)}", highlight=False)
        for text in filter(None, (method.about, method.paper)):
            console.print(Padding(escape(text), (0, 0, 0, 4)), highlight=False)
