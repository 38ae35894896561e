"""The command that lists presets and methods, and shows one."""

from __future__ import annotations

import re
import textwrap
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


METHODS = "Methods, for lors compare --methods and as base: [PRESET, METHOD]"


@app.command()
def presets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A preset, to show its settings; or a word, to list all that have it, such as "
            "photos, paper or methods.",
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
    listed = {title: _with_word(title, lines, name or "") for title, lines in _groups()}
    if not any(listed.values()):
        raise InputError(
            f"no preset or method has {shortened(name or '')!r} in its name or description"
            f"{suggestion(name or '', [*known(), *methods()])}"
        )
    for title, lines in listed.items():
        if name is None and title == METHODS:
            _print_names(title, lines)
        else:
            _print(title, _together(lines) if name is None else lines)
    if name in methods():
        typer.echo(explained_method(methods()[name]) + "\n")
    console.print(
        "The number is the mean of IR and TR@1/5/10, as published or as measured here.\n"
        "lors presets WORD lists what has the word; lors presets NAME shows settings.",
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
            about = _beyond(values["description"], name, title)
            lines.append(Line(name, "" if recall is None else str(recall), about))
        yield title, [line for line in lines if not line.name.endswith("-base")]
    yield METHODS, [Line(name, "", method.about) for name, method in methods().items()]


def _beyond(description: str, name: str, title: str) -> str:
    """A description without a beginning that repeats its name or the title above it.

    >>> _beyond("COCO, 100 pairs, LoRS with wBCE, as in the paper", "coco-lors-100", "")
    'LoRS with wBCE, as in the paper'
    """
    said = {*name.split("-"), "pairs", *re.findall(r"[\w-]+", title.lower())}
    parts = description.split(", ")
    while len(parts) > 1 and said.issuperset(parts[0].lower().split()):
        del parts[0]
    return ", ".join(parts)


def _with_word(title: str, lines: Sequence[Line], word: str) -> list[Line]:
    """The lines that have the word; all of them where the title has it."""
    word = word.lower()
    if re.search(rf"\b{re.escape(word)}\b", title.lower()):
        return list(lines)
    return [line for line in lines if word in line.name or word in line.about.lower()]


def _together(lines: Sequence[Line]) -> list[Line]:
    """One line for presets whose names differ in the number of pairs alone.

    >>> _together([Line("lors-100", "27.4", "LoRS"), Line("lors-200", "29.5", "LoRS")])
    [Line(name='lors-{100,200}', recall='27.4-29.5', about='LoRS')]
    """
    families: dict[str, list[Line]] = {}
    for line in lines:
        families.setdefault(re.sub(r"-\d{3}\b", "-{}", line.name), []).append(line)
    return [_family(name, same) if len(same) > 1 else same[0] for name, same in families.items()]


def _family(name: str, lines: Sequence[Line]) -> Line:
    sizes = ",".join(re.findall(r"-(\d{3})\b", line.name)[0] for line in lines)
    recalls = sorted((line.recall for line in lines if line.recall), key=float)
    span = "-".join(dict.fromkeys([recalls[0], recalls[-1]])) if recalls else ""
    return Line(name.replace("{}", f"{{{sizes}}}"), span, lines[0].about)


def _print_names(title: str, lines: Sequence[Line]) -> None:
    """Names alone, as many on a line as it holds."""
    console.print(title, style="bold", highlight=False)
    names = ", ".join(line.name for line in lines)
    wrapped = textwrap.wrap(names, console.width - 2, break_on_hyphens=False)
    text = textwrap.indent("\n".join(wrapped), "  ")
    console.print(text + "\n", markup=False, highlight=False, soft_wrap=True)


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
