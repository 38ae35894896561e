"""How varied datasets are (the paper's figure of image feature variance)."""

from __future__ import annotations

import math
from pathlib import Path

from lors.show.analysis.rows import Row, read_rows
from lors.show.figures.canvas import BLUE, GOLD, Drawing, new_figure
from lors.system.errors import InputError

__all__ = ["make"]

COLUMNS = ("dataset", "kind", "images", "encoder", "dimensions", "variance")
COLOURS = {"pairs": BLUE, "labelled": GOLD}
LABELS = {"pairs": "pairs, total", "labelled": "labelled, within classes"}


def make(table: Path) -> Drawing:
    """Bars from what ``lors analyze variance --out TABLE`` wrote, one panel per encoder."""
    if not table.is_file():
        raise InputError(
            f"{str(table)!r} is not a table of variances: make one with 'lors analyze variance "
            "CONFIG --out variance.csv', then 'lors figure variance variance.csv'"
        )
    rows = read_rows(table, COLUMNS)
    encoders = list(dict.fromkeys(row["encoder"] for row in rows))
    if not rows or not all(_is_variance(row) for row in rows):
        raise InputError(
            f"{str(table)!r} holds no variances: write it with 'lors analyze variance --out'"
        )
    figure = new_figure(max(3.6, 0.5 * len(rows) / len(encoders) + 1.5) * len(encoders), 3.8)
    panels = figure.subplots(1, len(encoders), squeeze=False)[0]
    for axes, encoder in zip(panels, encoders, strict=True):
        own = [row for row in rows if row["encoder"] == encoder]
        own.sort(key=lambda row: row["kind"] != "pairs")
        for place, row in enumerate(own):
            axes.bar(place, float(row["variance"]), width=0.7, color=COLOURS[row["kind"]])
        names = [str(row["dataset"]) for row in own]
        axes.set_xticks(range(len(own)), names, rotation=40, ha="right")
        axes.set_title(str(encoder).partition("@/")[0])
    panels[0].set_ylabel("variance per dimension")
    kinds = dict.fromkeys(row["kind"] for row in rows)
    handles = [panels[0].bar(0, 0, color=COLOURS[kind], label=LABELS[kind]) for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return Drawing(figure, rows)


def _is_variance(row: Row) -> bool:
    try:
        return row["kind"] in COLOURS and math.isfinite(float(row["variance"]))
    except (ValueError, OverflowError):
        return False
