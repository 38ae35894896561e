"""The paper's figures of any run, one file each: PNG, SVG and the numbers as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lors.runs.opened import Run
from lors.show.figures import (
    anchors,
    examples,
    histogram,
    sample_pairs,
    similarity,
    spectrum,
    variance,
)
from lors.show.figures.canvas import Drawing, save, style
from lors.system.errors import choose
from lors.system.progress import Progress

__all__ = ["FIGURES", "Kind", "make_figure"]

Make = Callable[[Path, Sequence[str], Progress | None], Drawing]


@dataclass(frozen=True)
class Kind:
    """A figure that can be made.

    Args:
        about: what it shows.
        make: draws it from a path, with overrides of the configuration saved there.
    """

    about: str
    make: Make


def _of_run(make: Callable[[Run], Drawing]) -> Make:
    return lambda path, overrides, progress: make(Run(path, overrides, progress))


FIGURES = {
    "examples": Kind(
        "synthetic pairs before and after, with their nearest captions", _of_run(examples.make)
    ),
    "similarity": Kind("diagonal and residual of S", _of_run(similarity.make)),
    "sample-pairs": Kind(
        "images and the texts of other pairs, by similarity", _of_run(sample_pairs.make)
    ),
    "spectrum": Kind(
        "singular values of S, with and without diagonal, against a Gaussian matrix",
        _of_run(spectrum.make),
    ),
    "histogram": Kind(
        "similarities of true positives, planted false negatives and true negatives, of a run of "
        "'lors analyze false-negatives'",
        _of_run(histogram.make),
    ),
    "variance": Kind(
        "variance of datasets, from the table of 'lors analyze variance --out'",
        lambda path, overrides, progress: variance.make(path),
    ),
    "anchors": Kind("what attracts and repels an image embedding, by loss", _of_run(anchors.make)),
}


def make_figure(
    name: str,
    path: str | Path,
    out: str | Path,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[Path]:
    """Draw a figure and write it.

    Args:
        name: a name in ``FIGURES``.
        path: a run directory or a distilled set; for ``variance``, a table.
        out: the folder for NAME.png, NAME.svg and NAME.csv.
        overrides: changes to the configuration of the run, e.g. ``data.root=/elsewhere``.
        progress: reports long-running work.

    Returns:
        The files.

    Raises:
        InputError: an unknown name, no such run, or matplotlib is missing.
    """
    kind = choose(FIGURES, name, "figure")
    with style():
        return save(kind.make(Path(path), overrides, progress), name, Path(out))
