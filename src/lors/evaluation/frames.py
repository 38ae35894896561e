"""Tables for notebooks: HTML, and pandas where it is installed."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from lors.system.errors import InputError

__all__ = ["data_frame", "html_table"]


def html_table(lines: Sequence[Sequence[str]], title: str = "", notes: Sequence[str] = ()) -> str:
    """Lines of text as an HTML table, the first of them its head; ``**best**`` is bold.

    >>> "<td>set</td><td><b>43.7</b></td>" in html_table([["", "recall"], ["set", "**43.7**"]])
    True
    """
    head, *body = lines
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    rows = "".join(f"<tr>{''.join(f'<td>{_cell(c)}</td>' for c in line)}</tr>" for line in body)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{below}"


def data_frame(rows: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> Any:
    """A pandas data frame of rows, by their names or numbered.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError(
            "to_pandas needs the package pandas: pip install 'lors[notebook]'"
        ) from None
    if isinstance(rows, Mapping):
        return pandas.DataFrame(list(rows.values()), index=list(rows))
    return pandas.DataFrame(rows)


def _cell(text: str) -> str:
    if text.startswith("**"):
        return f"<b>{html.escape(text.strip('*'))}</b>"
    return html.escape(text)
