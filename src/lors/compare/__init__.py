"""Comparison: many methods on one budget, and the paper's tables."""

from lors.compare.run import compare
from lors.compare.table import (
    load_table,
    narrowed,
    own_table,
    scales,
    tables,
    titles,
    transferred,
)

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
