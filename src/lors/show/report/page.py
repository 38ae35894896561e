"""The report as a page of one file."""

from __future__ import annotations

from typing import Any

from lors.show.page import assets

__all__ = ["render"]

SCRIPTS = (
    "save",
    "zoom",
    "pick",
    "charts",
    "plot",
    "map",
    "retrievals",
    "gallery",
    "heatmap",
    "page",
)


def render(title: str, content: dict[str, Any]) -> str:
    """A report as HTML; see ``lors.show.page``.

    Args:
        title: of the browser's tab.
        content: what the script draws; see ``lors.show.report.blocks``.
    """
    return assets("lors.show.report", SCRIPTS).page(title, content)
