"""Comparison: many methods on one budget, and the paper's tables."""

from lors.comparison.controls import with_controls
from lors.comparison.table import (
    load_table,
    narrowed,
    own_table,
    scales,
    tables,
    titles,
    transferred,
)

__all__ = [
    "load_table",
    "narrowed",
    "own_table",
    "scales",
    "tables",
    "titles",
    "transferred",
    "with_controls",
]
