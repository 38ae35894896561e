"""Pages of the docs that are written from the settings: ``python -m lors.config.pages docs``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lors.config.catalogue import groups
from lors.config.config import Expected
from lors.config.describing import sections
from lors.config.method_blocks import filled, table
from lors.config.methods import methods
from lors.config.reading import load_config

__all__ = ["pages", "presets_page", "settings_page"]

WRITTEN = "<!-- Written by `make docs`: change the sources, not this page. -->"


def pages() -> dict[str, str]:
    """The text of every page, by its path below ``docs``."""
    return {"reference/settings.md": settings_page(), "reference/presets.md": presets_page()}


def settings_page() -> str:
    """Every setting with its type, its default and its meaning."""
    parts = [
        "# Settings",
        WRITTEN,
        "What a configuration can say, by section. On the command line `section.key=value` "
        "changes one; `lors settings SECTION` shows the same in a terminal, and "
        "[presets](presets.md) are configurations to start from.",
    ]
    for section in sections():
        title = f"`{section.name}`" if section.name else "The whole run"
        parts += [f"## {title}", section.about]
        rows = [
            (f"`{each.name}`", each.type.replace(" | ", " or "), f"`{each.default}`", each.meaning)
            for each in section.settings
        ]
        parts.append(table(("setting", "type", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def presets_page() -> str:
    """Every preset and every method."""
    parts = [
        "# Presets and methods",
        WRITTEN,
        "`lors distill NAME` runs a preset, `lors presets NAME` shows its settings and where each "
        "comes from. Recall is the mean of IR and TR@1/5/10 in percent, as published or "
        "as measured here; full data is what training on all real pairs reaches.",
    ]
    for title, group in groups().items():
        names = [name for name in group if not name.endswith("-base")]
        columns = ("preset", "what it does", "recall", "full data", "needs")
        parts += [f"## {title}", table(columns, [_preset(name) for name in names])]
    rows = [
        (f"`{method.name}`", method.label, method.about, _link(method.paper))
        for method in methods().values()
    ]
    parts += [
        "## Methods",
        "`lors compare PRESET --methods a,b` compares them, and a configuration takes one with "
        "`base: [PRESET, METHOD]`. [The methods](../methods/index.md) have a page each.",
        table(("method", "in tables", "what it does", "paper"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _preset(name: str) -> Sequence[str]:
    config = load_config(name)
    expected = config.expected or Expected()
    recalls = ("" if r is None else f"{r}" for r in (expected.recall, expected.full_data))
    needs = ", ".join(filter(None, (expected.time, expected.memory)))
    return f"`{name}`", config.description, *recalls, needs


def _link(paper: str) -> str:
    if not paper:
        return ""
    inside = paper.removeprefix("docs/")
    return f"[{Path(inside).stem}](../{inside})" if inside != paper else f"<{paper}>"


if __name__ == "__main__":
    docs = Path(sys.argv[1])
    for name, text in pages().items():
        (docs / name).write_text(text, "utf-8")
    for page in sorted(docs.glob("methods/*.md")):
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
