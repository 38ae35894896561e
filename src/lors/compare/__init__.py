"""Comparison: many methods on one budget, and the paper's tables."""

from lors.compare.run import fill_table
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
    "fill_table",
    "load_table",
    "narrowed",
    "own_table",
    "scales",
    "tables",
    "titles",
    "transferred",
]
