"""Shows the ``>>>`` examples of docstrings as code, where Markdown would show quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?m)^(?=>>> )(?:.+\n?)+")


class Doctests(griffe.Extension):
    """Puts every block of examples between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """A docstring was read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
