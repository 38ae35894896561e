"""What a proxy and an audit found, as tables and figures in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lors.runs.opened import Run
from lors.show.analysis.rows import Row, write_rows
from lors.show.figures.canvas import (
    BLUE,
    GOLD,
    GREY,
    RED,
    Drawing,
    frame,
    new_figure,
    save,
    style,
    wrapped,
)
from lors.show.figures.shown import look_at, pair_grid, show_picture
from lors.uses.audit import Audit
from lors.uses.proxy import FULL_DATA, Proxy

__all__ = ["proxy_rows", "write_audit", "write_proxy"]

COLOURS = (BLUE, RED, GOLD, GREY)
COLUMNS, LINES = 4, 2
"""Pairs shown of an audit: those whose image is nearest to a real one."""


def proxy_rows(found: Proxy) -> list[Row]:
    """Each configuration with its recall on val by every stand-in and by the full data."""
    rows = []
    for place, candidate in enumerate(found.candidates):
        row: Row = dict(candidate)
        for each in found.stand_ins:
            row[each.name] = float(each.recalls[:, place].mean())
            row[f"{each.name}, deviation"] = float(each.recalls[:, place].std())
        if found.full:
            row |= {FULL_DATA: found.full[place].val, f"{FULL_DATA}, test": found.full[place].test}
        rows.append(row)
    return rows


def write_proxy(found: Proxy, folder: Path) -> list[Path]:
    """The table of all configurations, and where the full data is known, the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    if not found.full:
        write_rows(folder / "proxy.csv", proxy_rows(found))
        return [folder / "proxy.csv"]
    with style():
        return save(_drawing(found), "proxy", folder)


def _drawing(found: Proxy) -> Drawing:
    """Recall on val by each stand-in against that on the full data."""
    figure = new_figure(3.2 * len(found.stand_ins), 3.2)
    panels = figure.subplots(1, len(found.stand_ins), squeeze=False)[0]
    full = [each.val for each in found.full]
    shown = zip(panels, found.stand_ins, found.agreements(), COLOURS, strict=False)
    for axes, stand_in, agreement, colour in shown:
        axes.scatter(full, stand_in.recalls.mean(0), s=14, color=colour)
        axes.set_title(f"{stand_in.name}: Spearman {agreement.spearman.mean:.2f}")
        axes.set_xlabel("recall on val, full data (%)")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("recall on val (%)")
    return Drawing(figure, proxy_rows(found))


def write_audit(
    found: Audit, path: str | Path, folder: Path, overrides: Sequence[str] = ()
) -> list[Path]:
    """The nearest real pair of every synthetic one as a table, and the nearest of all as pictures.

    Beside a synthetic image stands the real one. In space features a synthetic pair has no picture,
    and only the real one is shown.

    Args:
        found: by ``audit``.
        path: the set or run that it is of.
        folder: for audit.png, audit.svg and audit.csv.
        overrides: as of ``audit``.
    """
    run = Run(path, overrides)
    shown, real = look_at(run, run.distilled.pairs), run.setting.pairs.splits["train"]
    first = found.nearest[: COLUMNS * LINES]
    with style():
        figure, axes = pair_grid(-(-len(first) // COLUMNS), COLUMNS)
        for near, (left, right) in zip(first, axes.reshape(-1, 2), strict=False):
            show_picture(left, shown, near.pair)
            left.set_title(f"pair {near.pair}", fontsize=8)
            left.set_xlabel(wrapped(near.words, 22, lines=4), fontsize=7.5, loc="left")
            if run.config.encoder.space == "pixels":
                right.set_axis_on()
                frame(right)
                right.imshow(real.images[near.image].transpose(1, 2, 0), interpolation="nearest")
            right.set_title(f"cosines {near.image_cosine:.2f}, {near.text_cosine:.2f}", fontsize=8)
        return save(Drawing(figure, [asdict(near) for near in found.nearest]), "audit", folder)
