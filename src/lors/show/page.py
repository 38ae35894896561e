"""Pages of one file: style, script and data inside, nothing from outside.

Captions and file names are other people's text. They enter a page as JSON that no parser can take
for markup and leave it as text nodes; should that ever fail, the content security policy lets no
script run but our own, which it knows by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

__all__ = ["Assets", "assets", "inert_json"]


@dataclass(frozen=True)
class Assets:
    """What a page is made of, besides its content.

    Args:
        style: CSS.
        script: JavaScript that draws the content.
        policy: of the content that the page may use; see ``assets``.
    """

    style: str
    script: str
    policy: str

    def page(self, title: str, content: Mapping[str, Any]) -> str:
        """The page as HTML.

        Args:
            title: of the browser's tab.
            content: what the script draws.
        """
        return Template((files("lors.show") / "page.html").read_text("utf-8")).substitute(
            title=html.escape(title),
            policy=self.policy,
            style=self.style,
            script=self.script,
            data=inert_json(content),
        )


def assets(package: str, scripts: Sequence[str], sources: str = "img-src data:") -> Assets:
    """The style and the scripts of a page, which may use nothing but them and these sources.

    Args:
        package: holds ``page.css`` and the scripts.
        scripts: names of files, without ``.js``; they come after the common ``dom.js``.
        sources: directives of the content security policy.
    """
    folder = files(package)
    style = (folder / "page.css").read_text("utf-8")
    places = [files("lors.show") / "dom.js", *(folder / f"{name}.js" for name in scripts)]
    script = "\n".join(place.read_text("utf-8") for place in places)
    policy = (
        f"default-src 'none'; {sources}; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(style, script, policy)


def _hash(text: str) -> str:
    """An inline script or style as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert_json(content: Mapping[str, Any]) -> str:
    r"""JSON in ASCII without a character that HTML reads as markup.

    >>> inert_json({"caption": "</script>"})
    '{"caption":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
