"""Synthetic pairs before and after distillation (the paper's figure of distilled data)."""

from __future__ import annotations

from lors.analysis.rows import Row
from lors.figures.canvas import Drawing, new_figure, wrapped
from lors.figures.shown import Shown, look_at, show_picture
from lors.runs import Run

__all__ = ["make"]

COLUMNS, LINES = 4, 2
"""Pairs shown: the first ones, not the prettiest."""


def make(run: Run) -> Drawing:
    """The first pairs of a run, each with its nearest real captions."""
    before, after = look_at(run, run.start), look_at(run, run.distilled.pairs)
    rows = [_row(pair, before, after) for pair in range(len(after.words))]
    lines = min(LINES, -(-len(rows) // COLUMNS))
    figure = new_figure(12, 2.75 * lines)
    axes = figure.subplots(lines, 2 * COLUMNS, squeeze=False)
    for place, each in enumerate(axes.flat):
        pair = place // 2
        if pair >= len(rows):
            each.set_axis_off()
            continue
        shown, when = ((before, "before"), (after, "after"))[place % 2]
        show_picture(each, shown, pair)
        each.set_title(f"pair {pair}, {when}", fontsize=8)
        words = wrapped(shown.words[pair], 24, lines=4)
        each.set_xlabel(words, fontsize=7.5, loc="left")
    return Drawing(figure, rows)


def _row(pair: int, before: Shown, after: Shown) -> Row:
    row: Row = {"pair": pair}
    for when, shown in (("before", before), ("after", after)):
        if shown.image is not None:
            row[f"image_{when}"] = int(shown.image[pair])
        row[f"caption_{when}"] = shown.words[pair]
    return row
