"""What all figures share: the look, text that is shown as it is, and files that do not change.

matplotlib comes with an extra and is imported here alone, on use.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

from lors.files.artifacts import writing
from lors.show.analysis.rows import Row, write_rows
from lors.system.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GOLD",
    "GREY",
    "RED",
    "Drawing",
    "frame",
    "new_figure",
    "save",
    "style",
    "whole_numbers",
    "wrapped",
]

BLUE, RED, GOLD, GREY = "#2f6db5", "#c8443c", "#e0a526", "#8a8f98"
INK = "#22262b"

STYLE: dict[Any, Any] = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "savefig.bbox": "tight",
    "savefig.dpi": 150,
    "savefig.pad_inches": 0.08,
    "svg.hashsalt": "lors",
    "text.color": INK,
    "text.parse_math": False,  # captions with $ in them are no formulas
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
}


@dataclass(frozen=True)
class Drawing:
    """A figure and the numbers in it.

    Args:
        figure: matplotlib's.
        rows: what it shows.
    """

    figure: Figure
    rows: list[Row]


@contextmanager
def style() -> Iterator[None]:
    """The look of our figures, inside the block.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need an extra: pip install 'lors[figures]'") from None
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's matplotlibrc says
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches. It belongs to no global list of figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="compressed")
    FigureCanvasAgg(figure)
    return figure


def whole_numbers(axis: Axis) -> None:
    """Ticks for things that are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def frame(axes: Axes) -> None:
    """Axes that only frame a picture."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def wrapped(text: str, width: int, lines: int = 3) -> str:
    """A caption in a few lines; what cannot be printed is a space, what is too long ends in …"""
    printable = "".join(c if c.isprintable() else " " for c in text)
    short = shorten(printable, width * lines, placeholder="…")
    return "\n".join(wrap(short, width)[:lines])


def save(drawing: Drawing, name: str, folder: Path) -> list[Path]:
    """Write NAME.png, NAME.svg and NAME.csv; the same drawing gives the same bytes."""
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}
    paths = []
    for ending, about in metadata.items():
        paths.append(folder / f"{name}.{ending}")
        with writing(paths[-1]) as temporary, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # it is drawn as a box
            drawing.figure.savefig(temporary, format=ending, metadata=about)
    paths.append(folder / f"{name}.csv")
    write_rows(paths[-1], drawing.rows)
    return paths
