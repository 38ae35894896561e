"""A table with the controls that a sceptic asks for."""

from __future__ import annotations

from lors.comparison.table import Table, axes
from lors.comparison.variant import CONTROLS, method_variant, under_control
from lors.system.errors import InputError

__all__ = ["BASELINE", "TEACHERS", "with_controls"]

BASELINE = "random"
"""What gains are counted from, by name."""

TEACHERS = ("random-teachers", "clip-score-teachers")
"""Selections with the teachers' S, which a set should beat, by name."""


def with_controls(table: Table) -> Table:
    """A table that also shows what soft labels and teachers give away.

    Every set is read again with S = I, and with its texts replaced by the nearest real captions.
    Random pairs, and selected ones, with the teachers' similarity as a fixed S become methods.

    >>> from lors.comparison import own_table
    >>> table = with_controls(own_table("tiny", ["lors"], [8]))
    >>> [row.label for row in table.rows]
    ['8 pairs', '8 pairs, S = I', '8 pairs, nearest captions']
    >>> [column.label for column in table.columns][1:]
    ['Random', "Random, teachers' S", "CLIP score, teachers' S"]

    Args:
        table: of which methods are one axis.

    Raises:
        InputError: it is a table of times.
    """
    if table.measure == "seconds":
        raise InputError("a table of times has no recall: leave out --controls")
    across, along = axes(table)
    kept, methods = getattr(table, along), getattr(table, across)
    again = [
        variant.model_copy(
            update={"label": under_control(variant.label, control), "control": control}
        )
        for control in CONTROLS
        for variant in kept
        if not variant.evaluate
    ]
    there = {variant.method for variant in methods}
    added = [method_variant(name) for name in (BASELINE, *TEACHERS) if name not in there]
    return table.model_copy(update={along: (*kept, *again), across: (*methods, *added)})
