"""Synthetic pairs before and after distillation (the paper's figure of distilled data)."""

from __future__ import annotations

from lors.runs.opened import Run
from lors.show.analysis.rows import Row
from lors.show.figures.canvas import Drawing, wrapped
from lors.show.figures.shown import Shown, look_at, pair_grid, show_picture

__all__ = ["make"]

COLUMNS, LINES = 4, 2
"""Pairs shown: the first ones, not the prettiest."""


def make(run: Run) -> Drawing:
    """The first pairs of a run, each with its nearest real captions."""
    before, after = look_at(run, run.start), look_at(run, run.distilled.pairs)
    rows = [_row(pair, before, after) for pair in range(len(after.words))]
    figure, axes = pair_grid(min(LINES, -(-len(rows) // COLUMNS)), COLUMNS)
    for pair, both in enumerate(axes.reshape(-1, 2)[: len(rows)]):
        for each, shown, when in zip(both, (before, after), ("before", "after"), strict=True):
            show_picture(each, shown, pair)
            each.set_title(f"pair {pair}, {when}", fontsize=8)
            each.set_xlabel(wrapped(shown.words[pair], 22, lines=4), fontsize=7.5, loc="left")
    return Drawing(figure, rows)


def _row(pair: int, before: Shown, after: Shown) -> Row:
    row: Row = {"pair": pair}
    for when, shown in (("before", before), ("after", after)):
        if shown.image is not None:
            row[f"image_{when}"] = int(shown.image[pair])
        row[f"caption_{when}"] = shown.words[pair]
    return row
