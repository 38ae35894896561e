"""The search page: one file with its style, its script and its data, and nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from string import Template
from typing import Any

from lors.show.inline import inert_json, policy_source

__all__ = ["Column", "SearchPage", "policy", "render"]

SCRIPTS = ("dom.js", "scenes.js", "search.js")


@dataclass(frozen=True)
class Column:
    """The results of one model.

    Args:
        name: what the model was trained on.
        note: more about it.
    """

    name: str
    note: str = ""


@dataclass(frozen=True)
class SearchPage:
    """What the page shows.

    Args:
        title: its headline.
        columns: the models, side by side.
        lead: sentences below the headline.
        heading: above the search box, where the page has more than that.
        placeholder: of the search box.
        suggestions: queries to click on; the first is asked at once.
        completions: queries that the search box completes.
        tables: shown below.
        pairs: synthetic pairs, before and after, shown below.
        local: answers that were computed beforehand; None: a server answers.
    """

    title: str
    columns: Sequence[Column]
    lead: Sequence[str] = ()
    heading: str = ""
    placeholder: str = "What should the photo show?"
    suggestions: Sequence[str] = ()
    completions: Sequence[str] = ()
    tables: Sequence[Mapping[str, Any]] = field(default=())
    pairs: Mapping[str, Any] | None = None
    local: Mapping[str, Any] | None = None


def render(page: SearchPage) -> str:
    """The page as HTML.

    Names and captions are other people's text. They enter the page as JSON that no parser can take
    for markup and leave it as text nodes; should that ever fail, the content security policy lets
    no script run but our own, which it knows by its hash.
    """
    return Template(_asset("page.html")).substitute(
        title=html.escape(page.title),
        policy=policy(),
        style=_asset("page.css"),
        script=_script(),
        data=inert_json(asdict(page)),
    )


def policy() -> str:
    """The content security policy of the page: its own script and style, images, and searches."""
    return (
        f"default-src 'none'; img-src 'self' data:; connect-src 'self'; "
        f"style-src {policy_source(_asset('page.css'))}; "
        f"script-src {policy_source(_script())}; base-uri 'none'; form-action 'none'"
    )


def _script() -> str:
    return "\n".join(_asset(name) for name in SCRIPTS)


def _asset(name: str) -> str:
    return (files("lors.share.search") / name).read_text("utf-8")
