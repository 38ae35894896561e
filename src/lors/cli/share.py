"""Commands that exchange sets with others: import, merge, export, push."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from lors.cli.app import Alpha, Changes, Like, app, console
from lors.cli.display import LOADING, PREPARING, Display
from lors.system.errors import InputError

SetOrRun = Annotated[
    Path, typer.Argument(metavar="SET", help="A distilled set (.safetensors) or a run directory.")
]


@app.command("import")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... [KEY=VALUE]...",
            help="A published set (.pt), or the files of its subsets; a folder of images with "
            "captions; or experts (img_replay_buffer_K.pt, or their folder). Then settings that "
            "replace those of --like.",
        ),
    ],
    like: Like = None,
    alpha: Alpha = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Of a folder of images: the learning rate. Default: tuned on val."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Default: NAME.safetensors, or of experts the folder experts, beside it."
        ),
    ] = None,
) -> None:
    """Read a set or experts that another project published.

    LoRS, RepBlend and PTM-ST publish pickled files. They are opened here, as tensors alone: no code
    in them is run. What they do not say, --like does: data, encoders, loss and protocol.
    """
    from lors.config import load_config

    sources = [Path(word) for word in files if Path(word).exists() or "=" not in word]
    changes = [word for word in files if "=" in word and not Path(word).exists()]
    if like is None:
        raise InputError(
            "a published file does not say what it was made with: give --like CONFIG, e.g. --like "
            "flickr30k-lors-100-published ('lors presets published' lists them)"
        )
    missing = [path for path in sources if not path.exists()]
    if missing or not sources:
        raise InputError(f"there is no file {str(missing[0])!r}" if missing else "give a file")
    settings = load_config(like, changes)  # a mistake shows before PyTorch is loaded
    with Display(LOADING) as display:
        from lors.share.importing import import_set, inputs_of
        from lors.share.importing_experts import holds_experts, import_experts

        display.doing(PREPARING)
        beside = sources[0].resolve()
        if holds_experts(sources[0]):
            out = out or beside.parent / "experts"
            inputs = inputs_of(settings, changes)
            store = import_experts(sources, like, out, changes, progress=display)
        else:
            out = out or beside.with_suffix(".safetensors")
            if out.exists():
                raise InputError(f"{str(out)!r} is there already: choose another --out")
            made = import_set(sources, like, changes, alpha=alpha, rate=rate, progress=display)
            made.save(out)
            store = None
    if store is not None:
        console.print(f"The experts are in {escape(str(out))}. To use them:")
        known = 0
        while store.path(known).exists():
            known += 1
        read_as = [f"{name}={str(each).lower()}" for name, each in inputs.items()]
        words = [*changes, *read_as, f"experts.folder={out}", f"experts.count={known}"]
        line = f"lors distill {like} {' '.join(words)}"
        console.print(escape(line), soft_wrap=True, highlight=False)
        return
    console.print(escape(str(made)), soft_wrap=True, highlight=False)
    console.print(f"The set is {escape(str(out))}. To judge it:", soft_wrap=True)
    console.print(escape(f"lors evaluate {out}"), soft_wrap=True, highlight=False)


@app.command()
def merge(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET... [KEY=VALUE]...",
            help="Two or more distilled sets (.safetensors) or run directories. Then, with --tune, "
            "settings that replace those of the first.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("merged.safetensors"),
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Storage in pairs that it may take. Default: the sum of theirs."),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Choose its rates on the validation split of the first's data."
        ),
    ] = False,
) -> None:
    """Merge sets into one, for example of data that nobody may pool.

    The similarity between pairs of different sets is 0. The learning rates are the geometric means
    of theirs, unless others are better with --tune. The sets must have the same encoders and loss.
    """
    sources = [Path(word) for word in sets if Path(word).exists() or "=" not in word]
    changes = [word for word in sets if "=" in word and not Path(word).exists()]
    if changes and not tune:
        raise InputError(f"{changes[0]} is for --tune, which reads data: leave it out, or tune")
    if missing := [path for path in sources if not path.exists()]:
        raise InputError(f"there is no set {str(missing[0])!r}")
    if out.exists():
        raise InputError(f"{str(out)!r} is there already: choose another --out")
    with Display(LOADING) as display:
        from lors.evaluation.tuned_rates import with_tuned_rates
        from lors.sets.merging import merge as merged

        made = merged(sources, budget)
        if tune:
            display.doing(PREPARING)
            made = with_tuned_rates(made, changes, display)
        made.save(out)
    console.print(escape(str(made)), soft_wrap=True, highlight=False)
    console.print(f"The set is {escape(str(out))}. To judge it:", soft_wrap=True)
    console.print(escape(f"lors evaluate {out}"), soft_wrap=True, highlight=False)


@app.command()
def export(
    path: SetOrRun,
    overrides: Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new folder, or file. Default: export, or published.pt, beside the set."
        ),
    ] = None,
    format: Annotated[
        Literal["folder", "published"],
        typer.Option(help="A plain folder, or one file (.pt) for the published code of LoRS."),
    ] = "folder",
) -> None:
    """Write a set for others: a plain folder, or a published file.

    The folder has PNG images, nearest captions, S as a table, and a card. Hugging Face's
    imagefolder loads it. The real data is read for the nearest captions, from where the run found
    it unless overridden, e.g. data.root=/elsewhere.
    """
    if format == "published":
        _export_published(path, out)
        return
    with Display(LOADING) as display:
        from lors.runs.opened import Run
        from lors.share.export import export as write

        display.doing(PREPARING)
        run = Run(path, overrides or (), display)
        out = out or run.folder / "export"
        write(run, out)
    console.print(f"The set is in {escape(str(out))}; README.md is its card: add a licence to it")
    if run.config.encoder.space == "features":
        console.print(
            "It holds features, so there are no images; the nearest real ones are not "
            "exported, as their licence may not allow it"
        )


def _export_published(path: Path, out: Path | None) -> None:
    with Display(LOADING) as display:
        from lors.runs.opened import Run
        from lors.share.published import export_published

        run = Run(path)
        out = out or run.folder / "published.pt"
        export_published(run.distilled, out, display)
    console.print(f"The set is {escape(str(out))}", soft_wrap=True)


@app.command()
def push(
    path: SetOrRun,
    repo: Annotated[str, typer.Argument(metavar="REPO", help="Repository on the Hub: owner/name.")],
    overrides: Changes = None,
    private: Annotated[bool, typer.Option(help="Make a new repository private.")] = False,
) -> None:
    """Upload a set to the Hugging Face Hub as a dataset. Its files are those of 'lors export'.

    Needs a token with write access: run 'hf auth login', or set HF_TOKEN. 'lors audit SET' says
    beforehand what the set reveals of its data.
    """
    with Display(LOADING) as display:
        from lors.runs.opened import Run
        from lors.share.hub import push as upload

        display.doing(PREPARING)
        address = upload(Run(path, overrides or (), display), repo, private)
    console.print(f"The set is at {escape(address)}; add a licence to its card")
