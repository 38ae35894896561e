"""Commands for what one does with a set: use proxy, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lors.cli.app import Changes, app, console
from lors.cli.display import LOADING, PREPARING, Display
from lors.system.errors import InputError

use = typer.Typer(help="Put a set to use, and see what it is good for.", no_args_is_help=True)
app.add_typer(use, name="use")


@use.command()
def proxy(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET... [KEY=VALUE]...",
            help="A distilled set or run directory, or several of different seeds. Then settings "
            "that replace those of the first, e.g. data.root=/elsewhere.",
        ),
    ],
    space: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of settings and the values to try, such as 'experts.rate: [0.1, 0.3]'. "
            "Default: heads, widths, temperatures, rates, batches and weight decays."
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=2, help="Configurations to draw from the space.")] = 40,
    best: Annotated[int, typer.Option(min=1, help="How many of the best to show.")] = 3,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Networks per configuration. Default: one per set.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also train every configuration on the full data and on random pairs of equal "
            "storage, to see how far the set can be trusted.",
        ),
    ] = False,
    selection: Annotated[
        str | None,
        typer.Option(help="With --check, also on pairs of this selection, e.g. facility-location."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the table and, with --check, the figure. An interrupted "
            "check goes on from there."
        ),
    ] = None,
) -> None:
    """Tune a model and its training on a set instead of the full data.

    Every configuration trains on the set; those that reach most on the validation split are shown.
    The loss cannot be tuned so, as a set is made for one.
    """
    sources = [Path(word) for word in sets if Path(word).exists() or "=" not in word]
    changes = [word for word in sets if "=" in word and not Path(word).exists()]
    if selection is not None and not check:
        raise InputError("--selection is for --check: give both")
    with Display(LOADING) as display:
        from lors.evaluation.statistic import plus_minus
        from lors.uses.proxy import proxy as ranked
        from lors.uses.shown import write_proxy

        display.doing(PREPARING)
        found = ranked(
            sources,
            space,
            changes,
            count=count,
            seeds=seeds,
            check=check,
            selection=selection,
            out=out,
            progress=display,
        )
        paths = write_proxy(found, out) if out is not None else []
    table = Table("", "configuration", "recall on val", title="Best on the set")
    for place, (candidate, recall) in enumerate(found.best(best), 1):
        settings = " ".join(f"{name}={value}" for name, value in candidate.items())
        table.add_row(str(place), escape(settings), f"{recall:.1f}")
    console.print(table)
    if agreements := found.agreements():
        table = Table("ranked by", "Spearman", "Kendall", "regret", "seconds each")
        for each in agreements:
            both = (each.spearman, each.kendall)
            numbers = (plus_minus(n.mean, n.std, ".2f") for n in both)
            table.add_row(each.name, *numbers, str(each.regret), f"{each.seconds:.2f}")
        console.print(table)
        seconds = sum(each.seconds for each in found.full) / len(found.full)
        console.print(f"On the full data, a configuration takes {seconds:.2f} s of processor time.")
    for path in paths:
        console.print(escape(str(path)), highlight=False, soft_wrap=True)


@app.command()
def audit(
    path: Annotated[
        Path, typer.Argument(metavar="SET", help="A distilled set (.safetensors) or run directory.")
    ],
    overrides: Changes = None,
    full_data: Annotated[
        bool,
        typer.Option("--full-data", help="Also attack a model trained on all real pairs."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the nearest real pair of every synthetic one, with pictures."
        ),
    ] = None,
) -> None:
    """See what a set reveals of its data, before you share it.

    Real pairs that were used (train) and that were not (val and test) are told apart by their
    distance to the set, and by how surely a model trained on the set retrieves them.
    """
    if not path.exists():
        raise InputError(f"there is no set {str(path)!r}")
    with Display(LOADING) as display:
        from lors.uses.audit import audit as audited
        from lors.uses.shown import write_audit

        display.doing(PREPARING)
        found = audited(path, overrides or (), full_data=full_data, progress=display)
        paths = [] if out is None else write_audit(found, path, out, overrides or ())
    table = Table("attack", "AUC", "found at 1 % false positives", title="Who was in the data?")
    for each in found.attacks:
        table.add_row(each.name, f"{each.auc:.3f}", f"{100 * each.hits:.1f} %")
    table.add_row("guessing", "0.500", "1.0 %")
    console.print(table)
    console.print(found.sentence(), highlight=False)
    for file in paths:
        console.print(escape(str(file)), highlight=False, soft_wrap=True)
