"""Commands that make sets and measure them: distill, select, experts, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from lors.cli.app import Alpha, Changes, Like, Overrides, Source, app, console
from lors.cli.display import LOADING, PREPARING, Display, results_table
from lors.system.errors import InputError

References = Annotated[
    bool, typer.Option(help="Also measure the full data and random pairs of equal storage.")
]

DataParallel = Annotated[
    bool,
    typer.Option(
        "--data-parallel",
        help="Under torchrun: divide every batch between the ranks, for networks too large for one "
        "device, instead of whole experts and trajectories.",
    ),
]


@app.command()
def distill(
    config: Source,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory. Default: runs/NAME-OF-CONFIG.")
    ] = None,
    references: References = True,
    data_parallel: DataParallel = False,
) -> None:
    """Distil a dataset, from data to evaluation. Only runs what is missing; ends with a table.

    Interrupted? The same command continues where it stopped.
    """
    out = out or Path("runs") / Path(config).stem
    _run(config, list(overrides or ()), out, references, data_parallel)


@app.command()
def select(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="random, herding, k-center, medoids, facility-location, graph-cut, deduplication, "
            "forgetting or clip-score.",
        ),
    ],
    config: Source,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory. Default: runs/NAME-OF-CONFIG-METHOD.")
    ] = None,
    references: References = True,
) -> None:
    """Choose real pairs instead of learning synthetic ones. The result is a set like any other.

    Its learning rate and loss are tuned on the validation split; selection.csv lists the pairs.
    """
    out = out or Path("runs") / f"{Path(config).stem}-{method}"
    _run(config, [*(overrides or ()), f"selection.kind={method}"], out, references)


def _run(
    config: str,
    overrides: list[str],
    out: Path,
    references: bool,
    data_parallel: bool = False,
) -> None:
    from lors.config import load_config

    settings = load_config(config, overrides)  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.runs.folders import SET
        from lors.runs.pipeline import run
        from lors.show.report import end_with_report

        display.doing(PREPARING)
        results = run(settings, out, display, references, data_parallel)
    from lors.evaluation.results import in_one_sentence

    console.print(results_table(results.rows))
    if sentence := in_one_sentence(results.rows):
        console.print(sentence, style="bold", highlight=False)
    console.print(f"The set is {escape(str(out / SET))}", soft_wrap=True)
    with Display("writing the report") as display:  # a failure here takes no results away
        page = end_with_report(out, display)
    if page:
        console.print(f"The report is {escape(str(page))}", soft_wrap=True)


@app.command()
def encode(
    config: Source,
    out: Annotated[Path, typer.Option(help="Folder for the embeddings.")],
    overrides: Overrides = None,
) -> None:
    """Embed WebDataset shards with frozen trunks, one by one.

    For data larger than memory: the other commands then read the embeddings. Several processes
    share the shards, and the same command continues where it stopped.
    """
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.runs.encode import encode_shards

        display.doing(PREPARING)
        encode_shards(settings, out, display)
    console.print("The embeddings are there. To choose or distil from them:")
    for command in ("select herding", "distill"):
        line = f"lors {command} features data.root={out}"
        console.print(escape(line), soft_wrap=True, highlight=False)


@app.command()
def experts(
    config: Source,
    overrides: Overrides = None,
    data_parallel: DataParallel = False,
    trunk: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the image trunk of the first expert as a weight file (.safetensors), "
            "for encoder.image_weights of another configuration.",
        ),
    ] = None,
) -> None:
    """Train the experts of a configuration that do not exist yet."""
    from lors.config import load_config

    settings = load_config(config, overrides or ())  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.experts import experts_of
        from lors.setting import setting_of
        from lors.share.trunk import check_image_trunk_file, write_image_trunk
        from lors.system import ranks

        display.doing(PREPARING)
        if trunk is not None:
            check_image_trunk_file(settings, trunk)
        setting = setting_of(settings, display, data_parallel=data_parallel)
        store = experts_of(setting)
        if trunk is not None and ranks.rank() == 0:
            write_image_trunk(setting, trunk)
    console.print(f"The experts are in {escape(str(store.folder))}", soft_wrap=True)
    if trunk is not None:
        console.print(f"The image trunk is {escape(str(trunk))}", soft_wrap=True)


@app.command()
def evaluate(
    distilled: Annotated[
        Path,
        typer.Argument(
            metavar="SET",
            help="A distilled set (.safetensors) or a run directory; with --like, a set that "
            "another project published, or the files of its subsets one after the other.",
        ),
    ],
    overrides: Changes = None,
    like: Like = None,
    alpha: Alpha = None,
    references: References = True,
    image_trunk: Annotated[
        str | None, typer.Option(help="Evaluate with this image trunk instead; pixel sets only.")
    ] = None,
    image_weights: Annotated[
        str | None, typer.Option(help="Weights of that trunk: hub, or a file. Default: none.")
    ] = None,
    control: Annotated[
        Literal["identity", "captions"] | None,
        typer.Option(
            help="Measure it without soft labels (identity: S = I), or with each text replaced by "
            "the nearest real caption (captions)."
        ),
    ] = None,
) -> None:
    """Train fresh networks on a set and measure their recall.

    The epoch is chosen on the validation split; beside it stand the literature's reading (the best
    epoch on the test split), random pairs of equal storage and the full data, which are measured
    once and kept. Data, encoders and protocol are those saved in the set unless overridden, e.g.
    data.root=/elsewhere evaluate.seeds=10.
    """
    words = overrides or ()
    sources = [distilled, *(Path(word) for word in words if "=" not in word)]
    changes = [word for word in words if "=" in word]
    if image_trunk is not None:
        changes += [f"encoder.image={image_trunk}", "encoder.image_weights=none"]
    if image_weights is not None:
        changes.append(f"encoder.image_weights={image_weights}")
    if missing := [source for source in sources if not source.exists()]:
        raise InputError(f"there is no set {str(missing[0])!r}")
    with Display(LOADING) as display:
        from lors.share.judging import judge

        display.doing(PREPARING)
        results = judge(
            distilled if len(sources) == 1 else sources,
            like,
            changes,
            references=references,
            control=control,
            alpha=alpha,
            progress=display,
        )
    from lors.evaluation.results import in_one_sentence

    console.print(results_table(results.rows))
    console.print(in_one_sentence(results.rows), style="bold", highlight=False)
