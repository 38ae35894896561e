"""Commands that share sets: export, push."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lors.cli.app import Changes, app, console
from lors.cli.display import LOADING, PREPARING, Display

SetOrRun = Annotated[
    Path, typer.Argument(metavar="SET", help="A distilled set (.safetensors) or a run directory.")
]


@app.command()
def export(
    path: SetOrRun,
    overrides: Changes = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder. Default: export, beside the set.")
    ] = None,
) -> None:
    """Write a set to a plain folder. PNG images, nearest captions, S as a table, and a card.

    Hugging Face's imagefolder loads it. The real data is read for the nearest captions, from where
    the run found it unless overridden, e.g. data.root=/elsewhere.
    """
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


@app.command()
def push(
    path: SetOrRun,
    repo: Annotated[str, typer.Argument(metavar="REPO", help="Repository on the Hub: owner/name.")],
    overrides: Changes = None,
    private: Annotated[bool, typer.Option(help="Make a new repository private.")] = False,
) -> None:
    """Upload a set to the Hugging Face Hub as a dataset. Its files are those of 'lors export'.

    Needs a token with write access: run 'hf auth login', or set HF_TOKEN.
    """
    with Display(LOADING) as display:
        from lors.runs.opened import Run
        from lors.share.hub import push as upload

        display.doing(PREPARING)
        address = upload(Run(path, overrides or (), display), repo, private)
    console.print(f"The set is at {escape(address)}; add a licence to its card")
