"""The page itself: one file with its style, its script and its data, and nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

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
        f"default-src 'none'; img-src data:; style-src {_source(style)}; "
        f"script-src {_source(script)}; base-uri 'none'; form-action 'none'"
    )
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        policy=policy,
        style=style,
        script=script,
        data=_inert_json(content),
    )


def _asset(name: str) -> str:
    return (files("lors.show.report") / name).read_text("utf-8")


def _source(text: str) -> str:
    """An inline script or style as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inert_json(content: dict[str, Any]) -> str:
    r"""JSON in ASCII without a character that HTML reads as markup.

    >>> _inert_json({"caption": "</script>"})
    '{"caption":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
