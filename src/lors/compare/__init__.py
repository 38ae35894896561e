"""Comparison: many methods on one budget, and the paper's tables."""

from typing import TYPE_CHECKING, Any

from lors.compare.table import (
    load_table,
    narrowed,
    own_table,
    scales,
    tables,
    titles,
    transferred,
)

if TYPE_CHECKING:
    from lors.compare.run import compare

__all__ = [
    "compare",
    "load_table",
    "narrowed",
    "own_table",
    "scales",
    "tables",
    "titles",
    "transferred",
]


def __getattr__(name: str) -> Any:
    """Import on first use what needs PyTorch, so that a wrong name of a method shows at once."""
    if name == "compare":
        from lors.compare.run import compare

        return compare
    raise AttributeError(f"module 'lors.compare' has no attribute {name!r}")
