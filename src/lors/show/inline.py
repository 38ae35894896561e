"""Data, scripts and styles inside of a page: safe where other people's text is among them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["inert_json", "policy_source"]


def policy_source(text: str) -> str:
    """An inline script or style as a content security policy names it: by its hash."""
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
