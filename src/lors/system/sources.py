"""What tells things apart that callers define: their source code."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

__all__ = ["source_digest"]


def source_digest(thing: Any) -> str:
    """A short name for the code of a function or a class, as far as Python can show it.

    >>> source_digest(len) == source_digest(len) != source_digest(max)
    True
    """
    try:
        text = inspect.getsource(thing)
    except (OSError, TypeError):
        text = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(thing))}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
