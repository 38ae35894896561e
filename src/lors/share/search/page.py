"""The search page: one file with its style, its script and its data, and nothing from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from lors.show.page import Assets, assets

__all__ = ["Column", "SearchPage", "policy", "render"]


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
    """The page as HTML; see ``lors.show.page``."""
    return _assets().page(page.title, asdict(page))


def policy() -> str:
    """The content security policy of the page: its own script and style, images, and searches."""
    return _assets().policy


@cache
def _assets() -> Assets:
    return assets(
        "lors.share.search", ("scenes", "search"), "img-src 'self' data:; connect-src 'self'"
    )
