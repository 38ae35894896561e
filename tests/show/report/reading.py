"""Reading a page back: the data in it is the data it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["blocks_of", "content_of", "section_of"]


def content_of(page: str | Path) -> dict[str, Any]:
    """The content of a page, as its script reads it."""
    html = page.read_text("utf-8") if isinstance(page, Path) else page
    (data,) = re.findall(r'<script id="content" type="application/json">(.*?)</script>', html)
    content: dict[str, Any] = json.loads(data)
    return content


def section_of(content: dict[str, Any], title: str) -> dict[str, Any]:
    """The section with a title."""
    section: dict[str, Any] = next(s for s in content["sections"] if s["title"] == title)
    return section


def blocks_of(content: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """All blocks of a kind."""
    return [b for s in content["sections"] for b in s["blocks"] if b["kind"] == kind]
