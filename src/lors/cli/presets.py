"""The command that lists presets and methods, and shows one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from lors.cli.app import app, console
from lors.system.errors import InputError, shortened, suggestion


class Line(NamedTuple):
    """A preset or a method in the list."""

    name: str
    recall: str
    about: str


@app.command()
def presets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A preset, to show its settings; or a word, to list what has it."
        ),
    ] = None,
) -> None:
    """List the presets and methods that come with lors, or show one."""
    from lors.config import methods
    from lors.config import presets as known
    from lors.config.explaining import explained, explained_method

    if name in known():
        typer.echo(explained(name), nl=False)
        return
    listed = {title: _with_word(lines, name or "") for title, lines in _groups()}
    if not any(listed.values()):
        raise InputError(
            f"no preset or method has {shortened(name or '')!r} in its name or description"
            f"{suggestion(name or '', [*known(), *methods()])}"
        )
    for title, lines in listed.items():
        _print(title, lines)
    if name in methods():
        typer.echo(explained_method(methods()[name]) + "\n")
    console.print(
        "Recall: mean of IR and TR@1/5/10, as published or as measured here.\n"
        "lors presets NAME shows a preset's settings, lors plan NAME its time and memory.",
        highlight=False,
    )


def _groups() -> Iterator[tuple[str, list[Line]]]:
    """The title and the lines of every group; what is only a base of others is left out."""
    from lors.config import methods
    from lors.config.bases import Bases
    from lors.config.catalogue import groups

    for title, group in groups().items():
        lines = []
        for name in group:
            values = Bases().read(name)
            recall = (values.get("expected") or {}).get("recall")
            about = _beyond_name(values["description"], name)
            lines.append(Line(name, "" if recall is None else str(recall), about))
        yield title, [line for line in lines if not line.name.endswith("-base")]
    yield (
        "Methods, for lors compare --methods and as base: [PRESET, METHOD]",
        [Line(name, "", method.about) for name, method in methods().items()],
    )


def _beyond_name(description: str, name: str) -> str:
    """A description without a beginning that repeats its name.

    >>> _beyond_name("COCO, 100 pairs, LoRS with wBCE, as in the paper", "coco-lors-100")
    'LoRS with wBCE, as in the paper'
    """
    said = {*name.split("-"), "pairs"}
    parts = description.split(", ")
    while len(parts) > 1 and said.issuperset(parts[0].lower().split()):
        del parts[0]
    return ", ".join(parts)


def _with_word(lines: Sequence[Line], word: str) -> list[Line]:
    word = word.lower()
    return [line for line in lines if word in line.name or word in line.about.lower()]


def _print(title: str, lines: Sequence[Line]) -> None:
    """One line each, cut where the terminal ends."""
    if not lines:
        return
    console.print(title, style="bold", highlight=False)
    names = max(len(line.name) for line in lines)
    recalls = max(len(line.recall) for line in lines)
    for line in lines:
        recall = f"{line.recall:>{recalls}}  " if recalls else ""
        text = f"  {line.name:<{names}}  {recall}{line.about}"
        console.print(text, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
    console.print()
