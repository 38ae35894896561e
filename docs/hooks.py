"""What the site shows that is not a page: the commands, the notebooks, pages nobody listed."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

COMMANDS = "<!-- commands -->"
"""Where the page on commands has them; everywhere else they come from ``--help``."""

NUMBERS = re.compile(r"(?<=\d) ([±/]) (?=\d)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook, and list pages that the navigation does not name."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            notebook = nbformat.read(file.abs_src_path, as_version=4)
            name = file.src_uri.removesuffix(".ipynb")
            files.append(File.generated(config, f"{name}.md", content=page_of(notebook, file.name)))
    list_the_rest(config, files)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in the commands, link to the pages of notebooks, and keep numbers of a cell together."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    if page.file.src_uri == "reference/api.md":
        markdown += other_names(markdown)
    markdown = re.sub(r"(?m)^\|.*$", lambda row: NUMBERS.sub("\u00a0\\1\u00a0", row[0]), markdown)
    return re.sub(r"(\]\([^)\s]*)\.ipynb\)", r"\1.md)", markdown)


def other_names(page: str) -> str:
    """The public names that the page on the API has in no section of its own."""
    import lors

    missing = [name for name in lors.__all__ if f"::: lors.{name}\n" not in page]
    return "\n## More\n\n" + "\n".join(f"::: lors.{n}" for n in missing) if missing else ""


def list_the_rest(config: MkDocsConfig, files: Files) -> None:
    """Put pages that the navigation does not name into the part that has their folder."""
    for file in files.documentation_pages():
        named = str(config.nav)
        if f"'{file.src_uri}'" in named:
            continue
        folder = file.src_uri.rpartition("/")[0]
        for part in config.nav or []:
            (pages,) = part.values()
            if isinstance(pages, list) and f"'{folder}/" in str(pages):
                pages.append(file.src_uri)


def page_of(notebook: Any, name: str) -> str:
    """A notebook as a page: its words, its code, and what it printed and drew."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```{{.python .cell}}\n{cell.source}\n```")
        parts += [shown for output in cell.outputs if (shown := output_of(output))]
    title, *rest = parts
    note = f'<a href="{name}.ipynb" download>Download the notebook</a>'
    return "\n\n".join([title, note, *rest])


def output_of(output: Any) -> str:
    """What a cell printed, or the picture or table that it showed."""
    data = output.get("data", {})
    if "image/png" in data:
        source = data["image/png"].replace("\n", "")
        return f'<img alt="What the code above draws" src="data:image/png;base64,{source}">'
    if "text/html" in data:
        return f'<div class="output">{re.sub(chr(10) + "+", chr(10), data["text/html"])}</div>'
    text = output.get("text") or data.get("text/plain", "")
    return f"```{{.text .output}}\n{text.rstrip()}\n```" if text.strip() else ""


def commands() -> str:
    """Every command with its help, arguments and options."""
    from lors.cli import app

    group = typer.main.get_command(app)
    return "\n\n".join(_sections("lors", group))


def _sections(name: str, command: Any) -> list[str]:
    inner = getattr(command, "commands", {})
    if inner:
        found = [] if name == "lors" else [f"## `{name}`", _paragraphs(command)]
        for word, each in inner.items():
            found += [] if each.hidden else _sections(f"{name} {word}", each)
        return found
    rows = []
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        rows.append((_spelled(parameter), _help(parameter)))
    level = "##" if name.count(" ") < 2 else "###"
    table = ["| argument or option | meaning |", "|---|---|"]
    table += [f"| {spelled} | {meaning} |" for spelled, meaning in rows]
    return [f"{level} `{name}`", _paragraphs(command), "\n".join(table) if rows else ""]


def _paragraphs(command: Any) -> str:
    text = (command.help or "").replace("\b", "").strip()
    return "\n\n".join(re.sub(r"\s*\n\s*", " ", part) for part in text.split("\n\n"))


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name.upper()).strip('{}')}`"
    flags = [f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts)]
    return ", ".join(flags)


def _help(parameter: Any) -> str:
    text = re.sub(r"\s+", " ", getattr(parameter, "help", None) or "").replace("|", "\\|")
    default = parameter.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{text} Default: `{default}`." if plain and "efault" not in text else text
