"""The typer application that every module of commands adds to, and what they share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import islice, pairwise
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from lors.system.errors import printable
from lors.system.stopping import INTERRUPTED

__all__ = [
    "Alpha",
    "Changes",
    "Like",
    "Overrides",
    "Source",
    "app",
    "console",
    "end_interrupted",
    "without_plugins",
]


PLUGIN, HELP, WORDS = "--plugin", "lors.help", "lors.words"


def without_plugins(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options ``--plugin MODULE`` among the words of a command, and the other words.

    >>> without_plugins(["distill", "tiny", "--plugin", "mine", "--out", "x"])
    (['--plugin', 'mine'], ['distill', 'tiny', '--out', 'x'])
    """
    plugins, others, rest = list[str](), list[str](), iter(words)
    for word in rest:
        if word == "--":
            others += [word, *rest]
        elif word == PLUGIN:
            plugins += [word, *islice(rest, 1)]
        else:
            (plugins if word.startswith(f"{PLUGIN}=") else others).append(word)
    return plugins, others


class _Commands(TyperGroup):
    """All commands; typer itself would end an interrupted one without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--plugin`` is an option of every command, and may stand anywhere."""
        plugins, others = without_plugins(args)
        ctx.meta[HELP], ctx.meta[WORDS] = "--help" in others, others
        return super().parse_args(ctx, [*plugins, *others])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            end_interrupted(stop)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if isinstance(option, str) and hasattr(error, "message"):
                error.message += _hint(option, ctx.meta[WORDS])
            raise


def _hint(option: str, words: Sequence[str]) -> str:
    """What to write in the place of an option that does not exist, if a setting has its name.

    >>> _hint("--iterations", ["distill", "demo", "--iterations", "5"])
    '. It is a setting: write distill.iterations=5'
    """
    from lors.config.describing import sections

    last = option.lstrip("-").replace("-", "_")
    known = dict.fromkeys(setting.name for section in sections() for setting in section.settings)
    fitting = [name for name in known if name.rpartition(".")[2] == last]
    if not fitting:
        return ""
    given = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    given += [after for word, after in pairwise(words) if word == option and after[:1] != "-"]
    value = given[0] if given else "VALUE"
    return f". It is a setting: write {' or '.join(f'{name}={value}' for name in fitting)}"


app = typer.Typer(
    cls=_Commands,
    help="Distil a large set of captioned images into a tiny one that trains a CLIP-style model.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: boxes import a Markdown parser
    pretty_exceptions_enable=False,
)
console = Console()


def end_interrupted(stop: KeyboardInterrupt) -> NoReturn:
    """End the program after a signal, with a sentence and the usual exit code."""
    if not console.quiet:
        Console(stderr=True).print(INTERRUPTED)
    sys.exit(getattr(stop, "code", 130))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lors {version('lors')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            PLUGIN,
            metavar="MODULE",
            help="Import a module of yours first, so that its matchers, losses, … are known. "
            "Can be repeated, and can follow any command.",
        ),
    ] = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What stands before a command."""
    if context.meta[HELP]:  # nothing will be done, so nothing need be known
        return
    from lors.config.plugins import add_plugins, load_plugins

    load_plugins(_warn)
    add_plugins(plugin or ())


def _warn(sentence: str) -> None:
    if not console.quiet:  # as all ranks but the first are
        text = f"[bold yellow]warning:[/] {escape(printable(sentence))}"
        Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def _presets(incomplete: str) -> list[str]:
    """What a shell offers for a configuration; where there is nothing, it offers files."""
    from lors.config.catalogue import groups

    names = (name for group in groups().values() for name in group if not name.endswith("-base"))
    return [name for name in names if name.startswith(incomplete)]


Source = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="Name of a preset (see 'lors presets') or YAML file.",
        autocompletion=_presets,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings that replace those of CONFIG, e.g. distill.iterations=500.",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings that replace those saved with it, e.g. data.root=/elsewhere.",
        show_default=False,
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        metavar="CONFIG",
        help="The preset or YAML file that a set of another project was made with, e.g. "
        "flickr30k-lors-100-published. Its file is then opened, as tensors alone.",
        autocompletion=_presets,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(help="α of S = diag(ω) + (α/r) L Rᵀ, where the file does not tell it."),
]
