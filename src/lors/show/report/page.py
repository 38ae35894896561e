"""The page itself: one file with its style, its script and its data, and nothing from outside."""

from __future__ import annotations

import html
from importlib.resources import files
from string import Template
from typing import Any

from lors.show.inline import inert_json, policy_source

__all__ = ["render"]

SCRIPTS = tuple(
    f"{name}.js"
    for name in (
        "dom",
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
)


def render(title: str, content: dict[str, Any]) -> str:
    """A page as HTML.

    Captions are other people's text. They enter the page as JSON that no parser can take for markup
    and leave it as text nodes; should that ever fail, the content security policy lets no script
    run but our own, which it knows by its hash.

    Args:
        title: of the browser's tab.
        content: what the script draws; see ``lors.show.report.blocks``.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; img-src data:; style-src {policy_source(style)}; "
        f"script-src {policy_source(script)}; base-uri 'none'; form-action 'none'"
    )
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        policy=policy,
        style=style,
        script=script,
        data=inert_json(content),
    )


def _asset(name: str) -> str:
    return (files("lors.show.report") / name).read_text("utf-8")
