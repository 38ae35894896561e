"""Commands that find photos by words: search, serve."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lors.cli.app import app, console
from lors.cli.display import LOADING, PREPARING, Display
from lors.system.errors import InputError, printable, shortened
from lors.system.stopping import listening

if TYPE_CHECKING:
    from lors.share.search import Finder, Match

OVERRIDE = re.compile(r"[a-z_]+(\.[a-z_]+)+=")
"""How a setting begins, e.g. data.root=…; a folder or a query hardly does."""

RunOrModel = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A run directory, a distilled set, or a retriever (.safetensors)."
    ),
]
Split = Annotated[
    str,
    typer.Option(help="Split of the run's data, without PHOTOS: train, val or test."),
]


@app.command()
def search(
    run: RunOrModel,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[PHOTOS] WORDS [KEY=VALUE]...",
            help="A folder of images, at any depth (default: the run's own data); what to search "
            "for; and settings that replace those of the run, e.g. data.root=/elsewhere.",
        ),
    ],
    count: Annotated[int, typer.Option(min=1, help="How many photos to show.")] = 10,
    full: Annotated[
        bool, typer.Option("--full", help="Also search with the model trained on all real pairs.")
    ] = False,
    split: Split = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find photos by words. With the model trained on the distilled set.

    The model is trained on first use and kept beside the set. Photos are encoded once.
    """
    plain, overrides = _without_overrides(words)
    if len(plain) not in (1, 2):
        raise InputError(
            "give a folder of photos and the words to search for, the words in quotes: "
            'lors search RUN PHOTOS "a dog on a beach"'
        )
    *folder, query = plain
    if not query.strip():
        raise InputError("give one or more words to search for")
    _check_run(run)
    photos = _folder(folder)
    with _progress_on_stderr(as_json), Display(LOADING) as display:
        from lors.share.search import Finder
        from lors.share.search.finder import open_run

        display.doing(PREPARING)
        opened = open_run(run, overrides, display)
        finder = Finder.of_run(opened, photos, full, split, display)
        found = finder.find(query, count)
    if as_json:
        typer.echo(_json(finder, query, found, photos))
        return
    for name, matches in found.items():
        console.print(_table(name if full else "", query, matches, photos))
    searched = f"{len(finder.photos):,} {'photo' if len(finder.photos) == 1 else 'photos'}"
    skipped = f"; {finder.unreadable:,} could not be read" if finder.unreadable else ""
    console.print(f"Searched {searched}{skipped}.")


@app.command()
def serve(
    run: RunOrModel,
    photos: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PHOTOS] [KEY=VALUE]...",
            help="A folder of images, at any depth (default: the run's own data); and settings "
            "that replace those of the run, e.g. data.root=/elsewhere.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option(help="Also search with the model trained on all real pairs.")
    ] = True,
    split: Split = "test",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Default: 8765, or any free one if that is taken."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Search photos on a local page. The set's model and the full-data model side by side.

    Only programs on this machine can reach the page. Ctrl-C stops it.
    """
    plain, overrides = _without_overrides(photos or ())
    if len(plain) > 1:
        raise InputError(f"give one folder of photos, not {len(plain)}")
    _check_run(run)
    folder = _folder(plain)
    with Display(LOADING) as display:
        from lors.share.retriever import Retriever
        from lors.share.search.finder import Finder, open_run
        from lors.share.search.server import Server, open_in_browser, site_of

        display.doing(PREPARING)
        opened = open_run(run, overrides, display)
        full = full and not isinstance(opened, Retriever)
        finder = Finder.of_run(opened, folder, full, split, display)
        server = Server(site_of(finder, opened), port)
    console.print(f"Searching {len(finder.photos):,} photos at {server.address}", soft_wrap=True)
    console.print("Only this machine can reach it. Ctrl-C stops it.")
    if browser:
        open_in_browser(server.address)
    with listening(), server:
        server.run()
    console.print("Stopped.")


@contextmanager
def _progress_on_stderr(wanted: bool) -> Iterator[None]:
    """Keep progress out of what another program reads."""
    before, console.stderr = console.stderr, wanted
    try:
        yield
    finally:
        console.stderr = before


def _without_overrides(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are no settings, and those that are."""
    settings = [word for word in words if OVERRIDE.match(word)]
    return [word for word in words if not OVERRIDE.match(word)], settings


def _check_run(path: Path) -> None:
    if not path.exists():  # said before PyTorch is loaded
        raise InputError(f"there is no run, set or retriever {str(path)!r}")


def _folder(given: Sequence[str]) -> Path | None:
    """The folder of photos, checked before PyTorch is loaded."""
    if not given:
        return None
    folder = Path(given[0]).expanduser()
    if not folder.is_dir():
        raise InputError(f"there is no folder of photos {given[0]!r}")
    return folder


def _path(match: Match, folder: Path | None) -> str:
    return match.name if folder is None else str(folder / match.name)


def _table(model: str, query: str, matches: Sequence[Match], folder: Path | None) -> Table:
    captions = any(match.caption for match in matches)
    title = f"{escape(shortened(printable(query), 60))}{f' · {model}' if model else ''}"
    table = Table("", title=title, title_justify="left")
    table.add_column("score", justify="right")
    table.add_column("photo", overflow="fold")
    if captions:
        table.add_column("caption", overflow="fold")
    for rank, match in enumerate(matches, 1):
        words = [escape(shortened(printable(match.caption)))] if captions else []
        name = escape(printable(_path(match, folder)))
        table.add_row(str(rank), f"{match.score:.2f}", name, *words)
    return table


def _json(finder: Finder, query: str, found: dict[str, list[Match]], folder: Path | None) -> str:
    results = {
        name: [
            {
                "photo": _path(match, folder),
                "score": round(match.score, 4),
                "caption": match.caption,
            }
            for match in matches
        ]
        for name, matches in found.items()
    }
    content = {
        "query": query,
        "photos": len(finder.photos),
        "unreadable": finder.unreadable,
        "results": results,
    }
    return json.dumps(content, indent=2)
