"""The parts of a method's page that are written from its settings, between two comments.

A page has ``<!-- method: amd -->`` and ``<!-- options: trajectory -->``, each with an
``<!-- end -->`` below it; what stands between is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lors.config.describing import described
from lors.config.methods import Method, methods
from lors.config.names import MATCHERS, SELECTIONS, STARTS
from lors.config.options import options_of

__all__ = ["filled", "table"]

BLOCK = re.compile(r"<!-- (method|options): (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    r"""The page with its blocks as they are today.

    >>> print(filled("<!-- method: herding -->\n<!-- end -->").splitlines()[4])
    | in commands | `herding`: `lors compare PRESET --methods herding` |
    """

    def block(found: re.Match[str]) -> str:
        kind, name = found.groups()
        made = _facts(methods()[name]) if kind == "method" else _options(name)
        return f"<!-- {kind}: {name} -->\n\n{made}\n\n<!-- end -->"

    return BLOCK.sub(block, page)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _facts(method: Method) -> str:
    rows = [("in commands", f"`{method.name}`: `lors compare PRESET --methods {method.name}`")]
    if not method.selects:
        rows.append(("in a YAML file", f"`base: [PRESET, {method.name}]`"))
    rows.append(("settings that define it", _settings(method.settings)))
    if method.defaults:
        rows.append(("defaults, which you can change", _settings(method.defaults)))
    if not method.selects:
        options = options_of(method.matcher)
        where = f"scopes {', '.join(options.scopes)}; spaces {', '.join(options.spaces)}"
        rows.append(("works in", where))
        rows.append(("trains experts first", "yes" if options.reads_experts else "no"))
        learned = (
            "learned with the set"
            if options.learns_rates and method.learns
            else "tuned on the validation split"
        )
        rows.append(("learning rates", learned))
    if method.paper.startswith("https:"):
        rows.append(("paper", f"<{method.paper}>"))
    rows.append(("code", f"`{_code(method)}`"))
    return table(("", method.label), rows)


def _options(matcher: str) -> str:
    name = f"matching.{matcher}"
    section = next(each for each in described(name) if each.name == name)
    rows = [
        (f"`{each.name}`", each.type.replace(" | ", " or "), f"`{each.default}`", each.meaning)
        for each in section.settings
    ]
    return table(("option", "type", "default", "meaning"), rows)


def _settings(settings: Mapping[str, Any]) -> str:
    return "<br>".join(f"`{name}={_yaml(value)}`" for name, value in settings.items())


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else re.sub('"', "", json.dumps(value))


def _code(method: Method) -> str:
    if method.selects:
        place = SELECTIONS.place(method.settings["selection.kind"])
    elif method.learns:
        place = MATCHERS.place(method.matcher)
    else:
        place = STARTS.place(method.settings["distill.init"])
    return f"src/{place.partition(':')[0].replace('.', '/')}.py"
